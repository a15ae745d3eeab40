// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/serve"
	"muster.dev/muster/internal/platform/table"
)

// A table of more nodes than this says nothing to anybody; their times are summed up instead.
const joinRowsMax = 25

// printJoins prints each node's way in: the milliseconds from its launch to each step.
func printJoins(w io.Writer, joins []serve.Join) error {
	header := []string{"NODE", "MACHINE", "API", "CLIENT CSR", "APPROVED", "ISSUED", "REGISTERED", "SERVING CSR", "APPROVED", "ISSUED", "READY"}
	t := table.New(w, header...)
	if len(joins) > joinRowsMax {
		for _, quantile := range []struct {
			name string
			at   float64
		}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}} {
			t.Row(append([]string{quantile.name + " of " + strconv.Itoa(len(joins)), "-"}, quantiles(joins, quantile.at)...)...)
		}
	} else {
		for _, join := range joins {
			cells := []string{join.Node, join.Machine}
			for _, step := range v1alpha1.JoinSteps()[1:] {
				cells = append(cells, milliseconds(join.Steps[step]))
			}
			t.Row(cells...)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(joins) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(w, "Milliseconds from the launch of the machine. The serving certificate comes after Ready when the kubelet asks for it late.")
	return err
}

func quantiles(joins []serve.Join, at float64) []string {
	var cells []string
	for _, step := range v1alpha1.JoinSteps()[1:] {
		var all []time.Duration
		for _, join := range joins {
			if d, ok := join.Steps[step]; ok {
				all = append(all, d)
			}
		}
		if len(all) == 0 {
			cells = append(cells, "-")
			continue
		}
		slices.Sort(all)
		cells = append(cells, milliseconds(all[min(int(at*float64(len(all))), len(all)-1)]))
	}
	return cells
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}
