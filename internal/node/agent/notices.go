// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster.dev/muster/internal/platform/atomicfile"
)

// Notice is something about the node that a person should know, or that only a person can put right.
type Notice struct {
	Code  string    `json:"code"`
	Text  string    `json:"text"`
	Fix   string    `json:"fix,omitempty"`
	Since time.Time `json:"since"`
}

// PathNotices is where the notices of a machine stand while it runs.
const PathNotices = "/run/muster/notices.json"

// notices says each thing once when it begins, and once when it is over.
type notices struct {
	path string
	log  *slog.Logger
	now  func() time.Time
	// began is told of each notice that begins, or says something else.
	began func(Notice)

	open map[string]Notice
}

// set begins a notice, or changes what it says.
func (n *notices) set(code, text, fix string) {
	if before, ok := n.open[code]; ok && before.Text == text && before.Fix == fix {
		return
	}
	n.log.Warn("the node needs attention", "code", code, "what", text, "fix", fix)
	n.open[code] = Notice{Code: code, Text: text, Fix: fix, Since: n.now().UTC().Truncate(time.Second)}
	if n.began != nil {
		n.began(n.open[code])
	}
	n.write()
}

// clear ends a notice.
func (n *notices) clear(code string) {
	if _, ok := n.open[code]; !ok {
		return
	}
	n.log.Info("that is over", "code", code)
	delete(n.open, code)
	n.write()
}

func (n *notices) write() {
	if n.path == "" {
		return
	}
	list := make([]Notice, 0, len(n.open)) // not null in JSON
	list = slices.AppendSeq(list, maps.Values(n.open))
	slices.SortFunc(list, func(a, b Notice) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Code, b.Code)) })
	raw, err := json.MarshalIndent(list, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(n.path), 0o755) //nolint:gosec // G301: anybody may read what is wrong with the node
	}
	if err == nil {
		err = atomicfile.Replace(n.path, append(raw, '\n'), 0o644)
	}
	if err != nil {
		n.log.Error("cannot write notices", "error", err)
	}
}

// ReadNotices reads a file of notices. Without the file, it returns no notices.
func ReadNotices(path string) ([]Notice, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading notices: %w", err)
	}
	var list []Notice
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("reading notices in %s: %w", path, err)
	}
	return list, nil
}
