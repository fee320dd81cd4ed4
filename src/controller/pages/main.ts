// Program: serves the page of unknown routes. Settings come from the environment (src/templates/setup/pages.ts).

import process from 'node:process';
import { createPages } from './pages.ts';

const server = createPages().listen(Number(process.env['KF_PAGES_PORT'] ?? '8080'));
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    server.close();
    server.closeIdleConnections();
  });
}
