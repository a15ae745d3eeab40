// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/atomicfile"
)

// WriteFiles writes the files of this very machine. A file that is right already is left alone, and a machine that has
// joined gets no bootstrap kubeconfig. Say is told of files that more could read or write than should.
func WriteFiles(files []render.File, joined bool, say func(string)) error {
	for _, file := range files {
		if file.Path == render.PathBootstrapKubeconfig && joined {
			continue
		}
		if was, ok := loosened(file); ok {
			say(fmt.Sprintf("%s had mode %04o, and has %04o again", file.Path, was, file.Mode))
		}
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil { //nolint:gosec // G301: as on every node
			return fmt.Errorf("making directory of %s: %w", file.Path, err)
		}
		if err := atomicfile.Write(file.Path, file.Content, file.Mode); err != nil {
			return err
		}
	}
	return nil
}

// loosened reports whether a file is there with more permissions than it is to have.
func loosened(file render.File) (was fs.FileMode, ok bool) {
	info, err := os.Lstat(file.Path)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&^file.Mode != 0
}
