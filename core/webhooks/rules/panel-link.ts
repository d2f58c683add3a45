/** Addresses of pages of the control panel, for those who are sent there. */

/** @param publicUrl without a slash at the end */
export function endpointPage(publicUrl: string, endpointId: string): string {
  return `${publicUrl}/webhooks/${endpointId}`;
}
