// The only module that imports @kubernetes/client-node, by named re-exports, so that the bundler drops the rest. Load it lazily: it costs more than a whole `kf apps`.

export { KubeConfig } from '@kubernetes/client-node';
