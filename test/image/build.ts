/** What `main.ts` tells the tests about the build. */
export const IMAGE = "localhost/waybill";
export const BUILD_FILE = "build.json";

export interface Build {
  readonly status: number;
  /** The image that the finished one stands on, as the Dockerfile names it. */
  readonly base: string;
  readonly log: string;
}
