// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/termsafe"
)

const defaultFile = "muster.yaml"

// progress shows how far the start is: rows that change in place on a terminal, and elsewhere a line for each change.
type progress struct {
	w       io.Writer
	rows    *terminal.LiveRows // nil where nothing moves
	started time.Time
	said    map[string]said
}

// said is the last line about a row. A row that keeps changing says so once a second, or at once when it turns ready.
type said struct {
	text string
	at   time.Time
}

const sayInterval = time.Second

func newProgress(w io.Writer) *progress {
	return &progress{w: w, rows: terminal.NewMovingRows(w), started: time.Now(), said: map[string]said{}}
}

// show is called with every new status of the account and of the cluster that is waited for.
func (p *progress) show(status servicestatus.Status, cluster servicestatus.Cluster) {
	rows := progressRows(status, cluster, time.Now())
	if p.rows != nil {
		drawn := make([]terminal.Row, 0, len(rows))
		for _, row := range rows {
			drawn = append(drawn, row.drawn())
		}
		p.rows.Draw(drawn)
		return
	}
	for _, row := range rows {
		last := p.said[row.name]
		if last.text != row.text && (row.ready || time.Since(last.at) >= sayInterval) {
			p.said[row.name] = said{row.text, time.Now()}
			fmt.Fprintf(p.w, "%6.1fs  %-14s %s\n", time.Since(p.started).Seconds(), row.name, termsafe.Line(row.text))
		}
	}
}

type progressRow struct {
	name, text string
	ready      bool
}

func (r progressRow) drawn() terminal.Row {
	row := terminal.Row{Sign: "…", Color: 33, Text: fmt.Sprintf("%-14s %s", r.name, r.text)} // yellow
	if r.ready {
		row.Sign, row.Color = "✓", 32 // green
	}
	return row
}

// progressRows sums a status up: the control plane, then a row for each node group.
func progressRows(status servicestatus.Status, cluster servicestatus.Cluster, now time.Time) []progressRow {
	summary := runner.Summary(slices.Concat(status.Components, cluster.Components), now)
	plane := progressRow{name: "control plane", text: "ready", ready: summary == "" && cluster.Ready}
	if !plane.ready {
		plane.text = cmp.Or(summary, cluster.Message, status.Message, "setting up")
	}
	rows := []progressRow{plane}
	for _, group := range cluster.NodeGroups {
		row := progressRow{name: group.Name, ready: cluster.IsWhole(group)}
		row.text = readiness.ReadyOf(group.Ready, group.Desired, "node", "nodes") + steps(cluster.Machines, group.Name)
		if group.Machines == 0 && group.Message != "" && !row.ready {
			row.text += ": " + group.Message
		}
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].text = strings.ReplaceAll(rows[i].text, "\n", "; ") // a row is a line, also of several errors
	}
	return rows
}

// steps counts the machines of a group that are still on their way, by the step they are at.
func steps(machines []servicestatus.Machine, group string) string {
	counts := map[v1alpha1.JoinStep]int{}
	message := ""
	for _, m := range machines {
		if m.NodeGroup == group && m.Phase != v1alpha1.MachineReady && !m.Phase.Warm() {
			counts[m.Step]++
			if m.Message != "" && (m.Phase != v1alpha1.MachineJoining || m.Kept()) { // the message of a joining machine says no more than its step
				message = "; " + m.Name + ": " + m.Message
			}
		}
	}
	if len(counts) == 0 {
		return ""
	}
	var parts []string
	order := v1alpha1.JoinSteps()
	for _, step := range slices.SortedFunc(maps.Keys(counts), func(a, b v1alpha1.JoinStep) int { return slices.Index(order, a) - slices.Index(order, b) }) {
		name := string(step)
		if name == "" {
			name = "Pending"
		}
		parts = append(parts, fmt.Sprintf("%d %s", counts[step], name))
	}
	return " (" + strings.Join(parts, ", ") + message + ")"
}
