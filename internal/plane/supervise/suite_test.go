// SPDX-License-Identifier: Apache-2.0

package supervise

import (
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
			Ends: func() []string {
				raw, _ := os.ReadFile(ends)
				return strings.Fields(string(raw))
			},
		}
	})
}
