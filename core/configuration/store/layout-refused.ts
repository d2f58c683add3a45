/** The store has what this version does not read: reported without a stack. */
export class LayoutRefused extends Error {}
