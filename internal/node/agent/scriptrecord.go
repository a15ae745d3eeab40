// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"os"

	"muster.dev/muster/internal/node/userdata"
	"muster.dev/muster/internal/platform/atomicfile"
)

// The states of a script.
const (
	scriptWaits  = "waits"
	scriptRuns   = "runs"
	scriptDone   = "done"
	scriptFailed = "failed"
)

// scriptRecord is what became of an instance's scripts. It is on the disk, as scripts run once and a later boot must
// know.
type scriptRecord struct {
	Scripts []scriptState `json:"scripts"`
}

type scriptState struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// Failure is how it ended, with its last lines, if it failed.
	Failure string `json:"failure,omitempty"`
}

func newScriptRecord(scripts []userdata.Part) scriptRecord {
	var r scriptRecord
	for _, script := range scripts {
		r.Scripts = append(r.Scripts, scriptState{Name: script.Name, State: scriptWaits})
	}
	return r
}

func (r scriptRecord) write(path string) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(raw, '\n'), 0o600)
}

// readScriptRecord returns what failed when the scripts ran. A record that is not JSON is the time at which an earlier
// version of the agent ran them.
func readScriptRecord(path string) ([]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what became of the scripts: %w", err)
	}
	var r scriptRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return r.failures(), nil
}

func (r scriptRecord) failures() []string {
	var all []string
	for _, script := range r.Scripts {
		switch script.State {
		case scriptFailed:
			all = append(all, fmt.Sprintf("the script %s failed: %s", script.Name, script.Failure))
		case scriptRuns:
			all = append(all, fmt.Sprintf("the script %s was cut short when the machine went down, and no script runs twice", script.Name))
		case scriptWaits:
			all = append(all, fmt.Sprintf("the script %s did not run, as the machine went down before", script.Name))
		}
	}
	return all
}
