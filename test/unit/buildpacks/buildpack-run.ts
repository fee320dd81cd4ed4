// Runs a phase of one of our buildpacks as the lifecycle does: in the app's folder, with CNB_* variables for the output folders.
import { spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

const buildpacks = join(import.meta.dirname, '../../../tools/cluster/buildpacks');

export interface PhaseResult {
  code: number | null;
  /** stdout and stderr, as the build log shows them. */
  output: string;
}

export class Workspace {
  readonly root = mkdtempSync(join(tmpdir(), 'kf-buildpack-'));
  readonly app = join(this.root, 'app');
  readonly layers = join(this.root, 'layers');
  readonly platform = join(this.root, 'platform');

  constructor() {
    for (const folder of [this.app, this.layers, this.platform]) mkdirSync(folder);
  }

  /** Writes a file of the app; a script if `mode` says so. */
  write(path: string, content: string, mode = 0o644): void {
    const file = join(this.app, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, mode);
  }

  detect(buildpack: string, env: NodeJS.ProcessEnv = {}): Promise<PhaseResult> {
    return this.#run(buildpack, 'detect', env);
  }

  build(buildpack: string, env: NodeJS.ProcessEnv = {}): Promise<PhaseResult> {
    return this.#run(buildpack, 'build', env);
  }

  /** The text that the buildpack wrote into its layers folder; empty if there is no such file. */
  layerFile(path: string): string {
    const file = join(this.layers, path);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  #run(buildpack: string, phase: 'detect' | 'build', env: NodeJS.ProcessEnv): Promise<PhaseResult> {
    const folder = join(this.root, 'buildpack');
    cpSync(join(buildpacks, buildpack), folder, { recursive: true });
    // The web server is next to the buildpack in the builder image.
    writeFileSync(join(folder, 'staticserver'), 'the web server', { mode: 0o755 });
    // Not the synchronous form: the npm registry of a test runs in this process.
    const child = spawn(join(folder, 'bin', phase), {
      cwd: this.app,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter),
        HOME: this.root,
        CNB_BUILDPACK_DIR: folder,
        CNB_LAYERS_DIR: this.layers,
        CNB_PLATFORM_DIR: this.platform,
        ...env,
      },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    return new Promise((resolve, reject) => {
      child.on('error', reject).on('close', (code) => {
        resolve({ code, output });
      });
    });
  }
}
