// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/plane/runner/runnertest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	runnertest.Run(t, func(t *testing.T) runnertest.World {
		t.Helper()
		w := newWorld(t)
		ends := w.file("ends")
		return runnertest.World{
			Begin: func(t *testing.T) (runner.Runner, func()) {
				t.Helper()
				return w.run(quick())
			},
			Spec: func(name string, after ...string) component.Spec {
				spec := w.server(name, "farewell", after...)
				spec.Path = w.file("program-" + name)
				if err := os.Link(w.program, spec.Path); err != nil && !errors.Is(err, fs.ErrExist) {
					t.Fatal(err)
				}
				spec.Env = append(spec.Env, envEnds+"="+ends+" "+name)
				return spec
			},
			Break: w.touch, Mend: w.remove,
			Kill: func(name string) {
				for _, p := range w.find() {
					if p.Name == name {
						kill(t, p.PID, syscall.SIGKILL)
					}
				}
			},
			Replace: func(name string) {
				w.remove("program-" + name)
				copyFile(t, w.program, w.file("program-"+name))
			},
			Ends: func() []string {
				raw, _ := os.ReadFile(ends)
				return strings.Fields(string(raw))
			},
		}
	})
}
