// The description of a part of the cluster.

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
  /** Additional names in the result: link → binary. */
  links?: Record<string, string>;
  /** Dependency → file in it → file below the part's folder that replaces it, or null if it is removed. */
  patches?: Record<string, Record<string, string | null>>;
}
