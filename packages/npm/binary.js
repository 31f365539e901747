'use strict';

const platform = `${process.platform}-${process.arch}`;

/** The program: STEADFAST, or the one of this platform's package, or the PATH. */
function findBinary() {
  if (process.env.STEADFAST) return process.env.STEADFAST;
  try {
    return require.resolve(`steadfast-cluster-${platform}/bin/steadfast`);
  } catch {
    return 'steadfast';
  }
}

module.exports = { findBinary, platform };
