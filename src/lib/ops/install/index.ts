// What the commands `setup` and `uninstall` call; they load it in one piece.

export { readSetupFile } from './settings-file.ts';
export { previewSetup, setup } from './setup.ts';
export { listAppsOfInstallation, uninstall, uninstallKeepingData } from './uninstall.ts';
