// The YAML library for kubeconfigs that plain-yaml.ts cannot read. It is a separate module because a bundle gives no named exports to a lazy
// import of CommonJS.

export { parse as parseYaml } from 'yaml';
