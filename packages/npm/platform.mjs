// Makes the package that carries the binary for this platform:
//
//     node platform.mjs BINARY FOLDER
import fs from 'node:fs';
import path from 'node:path';

const [binary, folder] = process.argv.slice(2);
const main = JSON.parse(fs.readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const manifest = {
  name: `steadfast-cluster-${process.platform}-${process.arch}`,
  version: main.version,
  description: `The program of steadfast-cluster for ${process.platform}, ${process.arch}`,
  license: main.license,
  os: [process.platform],
  cpu: [process.arch],
  ...(process.platform === 'linux' ? { libc: ['glibc'] } : {}),
  files: ['bin'],
};
if (main.optionalDependencies[manifest.name] !== main.version) {
  throw new Error(`package.json does not name ${manifest.name} at ${main.version}`);
}
fs.mkdirSync(path.join(folder, 'bin'), { recursive: true });
fs.writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
fs.copyFileSync(binary, path.join(folder, 'bin', 'steadfast'));
fs.chmodSync(path.join(folder, 'bin', 'steadfast'), 0o755);
