// Times as the controller writes them into objects.

/** RFC 3339 with whole seconds, as the API server keeps it. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
