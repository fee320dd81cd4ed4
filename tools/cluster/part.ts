// What describes a part of the cluster.

/** A part of the cluster: a Go module of its own, and what is taken from it. */
export interface Part {
  /** Folder below `parts/` with the Go module that pins everything. */
  name: string;
  /** Binary name → Go package. */
  binaries: Record<string, string>;
  /** Folder name in the result → folder of a dependency, copied as it is. */
  folders?: Record<string, { module: string; folder: string }>;
  flags?: string[];
  /** Variables set by the linker: import path of the variable → value. */
  variables?: Record<string, string>;
  cgo?: boolean;
  /** Names that the result also has: link → binary. */
  links?: Record<string, string>;
  /** Dependency → file in it → file below the part's folder that takes its place, or null when it goes. */
  patches?: Record<string, Record<string, string | null>>;
}
