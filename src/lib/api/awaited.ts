// What the controller says that it waits for, in a sentence of kf.

/** The controller's sentence as the end of a sentence of ours. */
export function awaitedIn(message: string): string {
  return message
    .replace(/^Waiting for /, '')
    .replace(/^(?:The|An?) /, (article) => article.toLowerCase())
    .replace(/\.$/, '');
}
