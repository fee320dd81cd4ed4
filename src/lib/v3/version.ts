/** The version of the CF API whose shapes `kf curl` answers, and which `kf target` shows. */
export const followedApi = '3.195.0';
