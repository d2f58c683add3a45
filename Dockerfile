# One image for every role; compose.yaml names the role to run. ClickHouse and Redis run beside it, so the embedded engines
# and the build tools stay out.
FROM node:22-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM oven/bun:1.4.5-slim
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data MIMALLOC_PURGE_DELAY=-1
RUN mkdir /data && chown bun:bun /data
COPY --from=packages /app/node_modules node_modules
COPY . .
USER bun
VOLUME /data
ENTRYPOINT ["bun"]
CMD ["start/main.ts", "--quiet"]
