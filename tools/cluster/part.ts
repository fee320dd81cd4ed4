// The description of a part of the cluster.

/** A text of a file, and what takes its place. */
export interface Replacement {
  text: string;
  by: string;
}

/** A part of the cluster: its own Go module, and the results that are used. */
export interface Part {
  /** Folder below `parts/` with the Go module that pins all versions. */
  name: string;
  /** Binary name → Go package. */
  binaries: Record<string, string>;
  /** Folder name in the result → folder of a dependency, copied unchanged. */
  folders?: Record<string, { module: string; folder: string }>;
  flags?: string[];
  /** Variables set by the linker: import path of the variable → value. */
  variables?: Record<string, string>;
  cgo?: boolean;
  /** Dependency → file in it → file below the part's folder that replaces it, null if it is removed, or the texts in it that are replaced. */
  patches?: Record<string, Record<string, string | null | readonly Replacement[]>>;
}
