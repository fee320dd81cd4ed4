// Text that others wrote, cut to what a field may hold.

/** At most `most` characters. A character that the cut would halve stands as U+FFFD, as the API server keeps it: the text is the same when it is read back. */
export function cutText(text: string, most: number): string {
  return text.length <= most ? text : text.slice(0, most).toWellFormed();
}
