// Written by tools/generate.ts: every file of parts/.

import type { Part } from './part.ts';
import { part as controller } from './parts/controller.ts';
import { part as gateway } from './parts/gateway.ts';
import { part as internalDomain } from './parts/internal-domain.ts';
import { part as kinds } from './parts/kinds.ts';
import { part as namespaces } from './parts/namespaces.ts';
import { part as network } from './parts/network.ts';
import { part as networkCheck } from './parts/network-check.ts';
import { part as org } from './parts/org.ts';
import { part as pages } from './parts/pages.ts';
import { part as policies } from './parts/policies.ts';
import { part as programs } from './parts/programs.ts';
import { part as registry } from './parts/registry.ts';
import { part as roles } from './parts/roles.ts';
import { part as settings } from './parts/settings.ts';
import { part as space } from './parts/space.ts';

/** All parts of an installation, by name. */
export const parts: readonly Part[] = [
  controller,
  gateway,
  internalDomain,
  kinds,
  namespaces,
  network,
  networkCheck,
  org,
  pages,
  policies,
  programs,
  registry,
  roles,
  settings,
  space,
];
