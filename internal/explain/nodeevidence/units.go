// SPDX-License-Identifier: Apache-2.0

package nodeevidence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/explain/redaction"
	"muster.dev/muster/internal/platform/systemd"
)

const (
	kubeletUnit    = "kubelet.service"
	containerdUnit = "containerd.service"
	// lastWords is how many lines of a unit that failed are shown.
	lastWords = 20
)

// nodeadm are the units that make an EKS AL2023 instance a node (amazon-eks-ami, templates/al2023).
var nodeadm = []string{"nodeadm-boot-hook.service", "nodeadm-config.service", "nodeadm-run.service"}

func (r *reading) readUnits(ctx context.Context) {
	if r.Units == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	units, err := r.Units.ShowAll(ctx, append([]string{kubeletUnit, containerdUnit}, nodeadm...)...)
	if err != nil {
		r.unseen("systemd's units", err)
	}
	for _, u := range units {
		r.units[u.Name] = u
	}
}

// readLog reads the last minute of the kubelet's log.
func (r *reading) readLog(ctx context.Context) {
	since := r.Now.Add(-diagnosis.Recent)
	look := "tail " + kubeletLog
	var err error
	switch {
	case r.Journal != nil:
		look = "journalctl -u kubelet --since -1min"
		r.lines, err = r.Journal.Lines(ctx, kubeletUnit, since, maxLines)
	case r.disk.exists(kubeletLog):
		r.lines, err = r.disk.fileLines(kubeletLog, since)
	default:
		err = fmt.Errorf("there is no journal, and no %s", kubeletLog)
	}
	if err != nil {
		r.unseen("the kubelet's log", err)
		r.silent(err)
	}
	for _, line := range r.lines {
		if e, ok := evidence.KubeletLine([]byte(line.Text), r.object(), look); ok {
			e.Time = line.Time
			r.add(e)
		}
	}
}

// judgeUnits notes units that are not there or failed, with their last words.
func (r *reading) judgeUnits(ctx context.Context) {
	for _, name := range nodeadm {
		if state := stateOf(r.units[name]); state != "" && state != "not-found" {
			r.blocked = true
			r.add(unitEvidence(r.units[name], state, strings.Join(append([]string{told(r.units[name], state)}, texts(r.lastWords(ctx, name))...), "; ")))
		}
	}
	for _, name := range []string{containerdUnit, kubeletUnit} {
		u, ok := r.units[name]
		state := stateOf(u)
		another := name == containerdUnit && state == "not-found" // another runtime may be there
		if !ok || state == "" || r.blocked || another || state == "auto-restart" && !r.settled() {
			continue
		}
		e := unitEvidence(u, state, told(u, state))
		last := r.lastError(r.lastWords(ctx, name))
		for _, line := range last {
			own := e
			own.Time, own.Text, own.Trouble = line.Time, line.Text, line == last[len(last)-1]
			r.add(own)
		}
		e.Trouble = len(last) == 0
		r.add(e)
	}
}

// unitEvidence is what a unit that is not as it should be says.
func unitEvidence(u systemd.Unit, state, text string) diagnosis.Evidence {
	return diagnosis.Evidence{Source: cause.FromUnit, Code: u.Name + "/" + state, Look: "journalctl -b -u " + u.Name, Text: text, Trouble: true}
}

// told is what systemd says of a unit.
func told(u systemd.Unit, state string) string {
	if trouble := u.Trouble(); trouble != "" {
		return u.Name + " " + trouble
	}
	return u.Name + " is " + state
}

// lastWords are the last lines of a unit of this boot.
func (r *reading) lastWords(ctx context.Context, unit string) []Line {
	if r.Journal == nil || !r.units[unit].Exists() {
		return nil
	}
	lines, err := r.Journal.Lines(ctx, unit, time.Time{}, lastWords)
	if err != nil {
		r.unseen("the log of "+unit, err)
		r.silent(err)
	}
	return withoutKeys(lines[max(0, len(lines)-lastWords):])
}

// silent has a journal that does not answer be asked no more.
func (r *reading) silent(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		r.Journal = nil
	}
}

// withoutKeys are lines without private keys, which can be known by all of their lines together alone. If there is one, all
// lines have the time of the last: which of them are left is not known.
func withoutKeys(lines []Line) []Line {
	text, found := redaction.Text(strings.Join(texts(lines), "\n"))
	if found[redaction.PrivateKey] == 0 {
		return lines
	}
	var left []Line
	for line := range strings.SplitSeq(text, "\n") {
		left = append(left, Line{lines[len(lines)-1].Time, line})
	}
	return left
}

func texts(lines []Line) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = line.Text
	}
	return all
}

// lastError are the lines of a program up to the last error that it wrote, which is why it ended; nil if it wrote none.
func (*reading) lastError(lines []Line) []Line {
	for i, line := range slices.Backward(lines) {
		if len(line.Text) > 0 && (line.Text[0] == 'E' || line.Text[0] == 'F') || strings.Contains(line.Text, "err=") || strings.Contains(line.Text, "level=error") || strings.Contains(line.Text, "level=fatal") {
			return lines[:i+1]
		}
	}
	return nil
}

// stateOf is the state of a unit that is not as it should be; "" for one that is.
func stateOf(u systemd.Unit) string {
	switch {
	case u.Name == "": // systemd was not asked
		return ""
	case !u.Exists():
		return "not-found"
	case u.LoadState == "masked", u.UnitFileState == "masked":
		return "masked"
	case u.ActiveState == "failed":
		return "failed"
	case u.SubState == "auto-restart":
		return "auto-restart"
	case u.ActiveState == "inactive" && u.Name == kubeletUnit: // units that run once are inactive after it
		return "inactive"
	}
	return ""
}
