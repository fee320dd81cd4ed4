// Labels and annotations of users on kf's objects, and what Kubernetes accepts in them.

import { labels } from './group.ts';
import { defaultStrategies } from './rollout.ts';

/** Labels and annotations with such a prefix belong to Kubernetes, Korifi or kf. */
const isPlatformPrefix = (prefix: string): boolean => /(^|\.)(cloudfoundry\.org|kubernetes\.io|k8s\.io)$/.test(prefix);

/** True for a label or annotation that a user has set, not Kubernetes, Korifi or kf. One label of kf is for users. */
export const isOfUser = (name: string): boolean => name === labels.strategy || !isPlatformPrefix(name.split('/').slice(0, -1).join('/'));

/**
 * Why a label or annotation cannot be set: names and values must be valid for Kubernetes, and names below the platform's own domains are reserved.
 * @param key `labels` or `annotations`
 */
export function metadataProblem(key: string, name: string, value: string): string | undefined {
  if (key === 'labels' && name === labels.strategy) {
    const isKnown = value === '' || defaultStrategies.some((one) => one === value);
    return isKnown ? undefined : `'${value}' cannot be the value of '${name}': only ${defaultStrategies.join(' and ')} can be a default.`;
  }
  const [, prefix, short = ''] = /^(?:([^/]*)\/)?(.*)$/.exec(name) ?? [];
  const isName = /^[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?$/;
  if (!isName.test(short) || (prefix !== undefined && !/^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/.test(prefix)))
    return `'${name}' cannot be a name in ${key}: at most 63 letters, digits, '-', '_' and '.', with a domain and '/' before it or without.`;
  if (prefix !== undefined && isPlatformPrefix(prefix)) return `Names with '${prefix}/' are the platform's own.`;
  if (key === 'labels' && value !== '' && !isName.test(value))
    return `'${value}' cannot be the value of a label: at most 63 letters, digits, '-', '_' and '.'.`;
  return undefined;
}
