// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/platform/table"
)

// Rows for more nodes than this say nothing to anybody; their times are summed up instead.
const joinRowsMax = 25

// quantile is one of the times that sum many up.
type quantile struct {
	name string
	at   float64
}

func quantiles() []quantile { return []quantile{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}} }

// printJoins prints how long each node took from the launch of its machine until it was Ready, in lines that fit narrow
// terminals.
func printJoins(w io.Writer, joins []joinlog.Way) error {
	if len(joins) > joinRowsMax {
		var parts []string
		for _, q := range quantiles() {
			parts = append(parts, q.name+" "+seconds(quantileOf(joins, v1alpha1.StepReady, q.at)))
		}
		_, err := fmt.Fprintf(w, "%s Ready after %s\n", terminal.Count(len(joins), "node", "nodes"), strings.Join(parts, ", "))
		return err
	}
	if len(joins) == 0 {
		return nil
	}
	t := table.New(w, "NODE", "MACHINE", "READY")
	for _, join := range joins {
		t.Row(join.Node, join.Machine, seconds(join.Steps[v1alpha1.StepReady]))
	}
	return t.Flush()
}

// printSteps prints each node's way in: the milliseconds from its launch to each step. A step that no node took is left
// out: with a role, there is no client certificate.
func printSteps(w io.Writer, joins []joinlog.Way) error {
	if len(joins) == 0 {
		return nil
	}
	headings := map[v1alpha1.JoinStep]string{
		v1alpha1.StepAPIReached: "API", v1alpha1.StepClientCSRCreated: "CLIENT CSR", v1alpha1.StepClientCSRApproved: "APPROVED", v1alpha1.StepClientCSRIssued: "ISSUED",
		v1alpha1.StepNodeRegistered: "REGISTERED", v1alpha1.StepServingCSRCreated: "SERVING CSR", v1alpha1.StepServingCSRApproved: "APPROVED", v1alpha1.StepServingCSRIssued: "ISSUED",
		v1alpha1.StepReady: "READY",
	}
	steps := slices.DeleteFunc(v1alpha1.JoinSteps()[1:], func(step v1alpha1.JoinStep) bool {
		return !slices.ContainsFunc(joins, func(j joinlog.Way) bool { return j.Steps[step] != 0 })
	})
	header := []string{"NODE", "MACHINE"}
	for _, step := range steps {
		header = append(header, headings[step])
	}
	t := table.New(w, header...)
	row := func(name, machine string, took func(v1alpha1.JoinStep) time.Duration) {
		cells := []string{name, machine}
		for _, step := range steps {
			cells = append(cells, milliseconds(took(step)))
		}
		t.Row(cells...)
	}
	if len(joins) > joinRowsMax {
		for _, q := range quantiles() {
			row(q.name+" of "+strconv.Itoa(len(joins)), "-", func(step v1alpha1.JoinStep) time.Duration { return quantileOf(joins, step, q.at) })
		}
	} else {
		for _, join := range joins {
			row(join.Node, join.Machine, func(step v1alpha1.JoinStep) time.Duration { return join.Steps[step] })
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "Milliseconds from the launch of the machine. The serving certificate comes after Ready when the kubelet asks for it late.")
	return err
}

// quantileOf is the time in which a share of the nodes took a step; 0 if none did.
func quantileOf(joins []joinlog.Way, step v1alpha1.JoinStep, at float64) time.Duration {
	var all []time.Duration
	for _, join := range joins {
		if d, ok := join.Steps[step]; ok {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(int(at*float64(len(all))), len(all)-1)]
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}
