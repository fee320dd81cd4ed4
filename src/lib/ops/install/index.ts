// The functions for the commands `setup` and `uninstall`, which load them all with this file.

export { readSetupFile } from './settings-file.ts';
export { previewSetup, setup } from './setup.ts';
export { listAppsOfInstallation, uninstall, uninstallKeepingData } from './uninstall.ts';
