// The YAML library for kubeconfigs that plain-yaml.ts leaves to it. A module of its own, because a bundle gives no named exports to a lazy import of CommonJS.

export { parse as parseYaml } from 'yaml';
