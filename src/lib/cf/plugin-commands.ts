// Commands that teams have from plugins of cf, and those of older versions: what gives the same in kf. Loaded only for an unknown command.

import { KfError } from '../errors.ts';
import { findCommand } from './cf-commands.ts';

export interface ForeignCommand {
  name: string;
  /** The plugin of cf; undefined for a command of cf itself. */
  plugin: string | undefined;
  /** What to write instead. */
  instead: string;
}

const mtaPush = 'kf push -f manifest.yml, with an app for each module; kf create-user-provided-service for each resource';
const rolling = 'kf push APP (an update has no downtime)';
const autoscale = 'kf autoscale APP --policy FILE, or kf autoscale APP --min 1 --max 4 --cpu 80';
const autoscaled = 'kf autoscale APP --json';
const contexts = 'kubectl config get-contexts, and kf target --json for the present one';
const saved = 'kf api CONTEXT, then kf target -o ORG -s SPACE; a CF_HOME of its own for each target';
const recentLogs = 'kf logs APP --recent --json';

/** By plugin; each row is a name, then what to write instead. */
const byPlugin: Readonly<Record<string, readonly (readonly [names: string, instead: string])[]>> = {
  multiapps: [
    ['deploy', mtaPush],
    ['bg-deploy', `${mtaPush} (an update has no downtime)`],
    ['undeploy', 'kf delete APP -r, and kf delete-service SERVICE_INSTANCE, for each module and resource'],
    ['mta mtas', 'kf apps --json and kf services --json'],
    ['mta-ops download-mta-op-logs dmol', 'kf logs APP --recent'],
    ['purge-mta-config', 'nothing: kf keeps no configuration of MTAs'],
  ],
  'app-autoscaler': [
    ['autoscaling-api', 'nothing: the autoscaler is part of Kubernetes'],
    ['autoscaling-policy asp', autoscaled],
    ['attach-autoscaling-policy aasp', autoscale],
    ['detach-autoscaling-policy dasp', 'kf autoscale APP --off'],
    ['autoscaling-metrics asm', autoscaled],
    ['autoscaling-history ash', 'kf events APP'],
    ['create-autoscaling-credential casc delete-autoscaling-credential dasc', 'nothing: metrics of the cluster need no credentials'],
  ],
  copyenv: [['copyenv', "kf env APP --json; its VCAP_SERVICES as a variable: kf env APP --json | jq -c '.result.vcapServices'"]],
  targets: [
    ['targets', contexts],
    ['save-target', saved],
    ['set-target', saved],
    ['delete-target', 'kubectl config delete-context CONTEXT'],
  ],
  'blue-green-deploy': [['blue-green-deploy bgd', rolling]],
  autopilot: [['zero-downtime-push', rolling]],
  'log-cache': [
    ['tail', recentLogs],
    ['log-meta query', recentLogs],
  ],
  top: [['top', 'kf app APP, and kubectl top pods -n SPACE_GUID']],
  open: [['open', 'kf app APP --json shows its URLs']],
};

/** Commands of older versions of cf; `v3-push` is still there, and hidden. */
const former: Readonly<Record<string, string>> = {
  'v3-zdt-push': 'kf push',
  'v3-zdt-restart': 'kf restart',
  files: 'kubectl exec -n SPACE_GUID POD -- ls -l',
};

/** `v3-push`: cf 6 had new forms of its commands under names of their own. */
function formerInstead(name: string): string | undefined {
  const command = name.startsWith('v3-') ? findCommand(name.slice('v3-'.length))?.command : undefined;
  return former[name] ?? (command && (command[3] === '' ? `kf ${command[0]}` : command[3]));
}

/** The command of a plugin, or of an older version of cf, of that name. */
export function findForeign(name: string): ForeignCommand | undefined {
  const own = formerInstead(name);
  if (own !== undefined) return { name, plugin: undefined, instead: own };
  for (const [plugin, rows] of Object.entries(byPlugin)) {
    const row = rows.find(([names]) => names.split(' ').includes(name));
    if (row !== undefined) return { name, plugin, instead: row[1] };
  }
  return undefined;
}

/** The error for such a command; undefined for any other word. */
export function foreignError(name: string): KfError | undefined {
  const found = findForeign(name);
  if (found === undefined) return undefined;
  const owner = found.plugin === undefined ? 'a command of older versions of cf' : `a command of cf's plugin '${found.plugin}'`;
  return new KfError('usage', `'${name}' is ${owner}, which kf does not have.`, {
    hints: [`Instead: ${found.instead}`],
    details: { command: name, plugin: found.plugin },
  });
}
