// Cuts text of others to the length of a field.

/**
 * At most `most` characters. If the cut splits a character, U+FFFD replaces it, as the API server would store it: the text is then the same when
 * it is read back.
 */
export function cutText(text: string, most: number): string {
  return text.length <= most ? text : text.slice(0, most).toWellFormed();
}
