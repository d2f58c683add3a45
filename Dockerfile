# One image for every role; compose.yaml and the chart name the role to run. ClickHouse and Redis run beside it, so the embedded
# engines, the build tools and what only browsers and tests need stay out (tools/image). At most 60 MB above the base and Bun, which
# test/image checks.
FROM node:22-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts && node node_modules/bun/install.js
COPY . .
# What was built, for /healthz: docker build --build-arg COMMIT=$(git rev-parse HEAD)
ARG COMMIT=""
RUN node_modules/.bin/bun tools/main.ts image-tree /image "$COMMIT"

FROM debian:bookworm-slim
ARG COMMIT=""
ARG VERSION=""
ARG SOURCE=""
LABEL org.opencontainers.image.title="Waybill" org.opencontainers.image.revision="$COMMIT" \
  org.opencontainers.image.version="$VERSION" org.opencontainers.image.source="$SOURCE" \
  org.opencontainers.image.licenses="LicenseRef-Proprietary"
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data MIMALLOC_PURGE_DELAY=-1
# The kernel passes process 1 no signal that it does not listen for yet: a container stopped in its first second would run on.
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt /var/log/dpkg.log
COPY --from=build --chmod=755 /build/node_modules/bun/bin/bun.exe /usr/local/bin/bun
COPY --from=build /image /app
# The only folder that is written to: generated secrets, mail without a server. Everything else may be read-only.
RUN mkdir /data && chown 10001:10001 /data
# docker compose exec panel waybill doctor
RUN printf '#!/bin/sh\nexec bun /app/cli/main.ts "$@"\n' >/usr/local/bin/waybill && chmod 755 /usr/local/bin/waybill
USER 10001:10001
VOLUME /data
ENTRYPOINT ["tini", "--", "bun"]
CMD ["ingest/main.ts"]
# Of the role that the command above starts; compose.yaml has one for each role, and the chart has probes.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["bun", "cli/healthy/main.ts", "8081"]
