// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/aws/region"
)

// shiftable has the cluster of the world in two zones, with shifts enabled.
func shiftable(enabled bool, more ...client.Object) []client.Object {
	objects := clitest.World()
	for _, o := range objects {
		if c, ok := o.(*v1alpha1.Cluster); ok {
			c.Spec.ZonalShift, c.Status.SubnetIDs = &v1alpha1.ClusterZonalShift{Enabled: enabled}, []v1alpha1.SubnetID{"subnet-a", "subnet-b"}
		}
	}
	for _, zone := range []string{"a", "b"} {
		objects = append(objects, &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "subnet-" + zone}, Spec: v1alpha1.SubnetSpec{AvailabilityZone: "us-east-1" + zone}})
	}
	return append(objects, more...)
}

func shiftOf(name string, ends time.Duration) *v1alpha1.ZonalShift {
	s := &v1alpha1.ZonalShift{ObjectMeta: clitest.MadeBefore(name, time.Hour), Spec: v1alpha1.ZonalShiftSpec{ClusterName: "home", AwayFrom: "us-east-1a", ExpiryTime: metav1.NewTime(clitest.Noon.Add(ends)), Comment: "power"}}
	s.Namespace = "home"
	return s
}

func TestZonalShift(t *testing.T) {
	for name, c := range map[string]struct {
		there []client.Object
		off   bool
		args  []string
		says  []string
		fails string
	}{
		"start":             {nil, false, []string{"start", "us-east-1a", "--expires-in", "2h"}, []string{"zonalshift.muster.dev/", " started: cluster home away from us-east-1a until "}, ""},
		"start in yaml":     {nil, false, []string{"start", "use1-az2", "--expires-in", "90m", "--comment", "why", "-o", "yaml"}, []string{"kind: ZonalShift", "awayFrom: us-east-1b", "comment: why"}, ""},
		"an unknown zone":   {nil, false, []string{"start", "us-east-1c", "--expires-in", "2h"}, nil, "which has use1-az1 (us-east-1a), use1-az2 (us-east-1b)"},
		"too long":          {nil, false, []string{"start", "us-east-1a", "--expires-in", "100h"}, nil, "from 1m to 72h"},
		"not enabled":       {nil, true, []string{"start", "us-east-1a", "--expires-in", "2h"}, nil, "zonalShiftConfig enabled=true"},
		"one is active":     {[]client.Object{shiftOf("s1", time.Hour)}, false, []string{"start", "us-east-1b", "--expires-in", "2h"}, nil, "zonal shift s1 of cluster home away from us-east-1a is active"},
		"no time":           {nil, false, []string{"start", "us-east-1a"}, nil, "expires-in"},
		"update":            {[]client.Object{shiftOf("s1", time.Hour)}, false, []string{"update", "s1", "--expires-in", "3h"}, []string{"zonalshift.muster.dev/s1 updated: cluster home away from us-east-1a until " + clitest.Noon.Add(3*time.Hour).UTC().Format(time.RFC3339)}, ""},
		"update of nothing": {[]client.Object{shiftOf("s1", time.Hour)}, false, []string{"update", "s1"}, nil, "--expires-in or --comment"},
		"cancel":            {[]client.Object{shiftOf("s1", time.Hour)}, false, []string{"cancel", "s1", "-o", "json"}, []string{`"canceled": true`}, ""},
		"cancel an old one": {[]client.Object{shiftOf("s1", -time.Hour)}, false, []string{"cancel", "s1"}, nil, "is not active, but EXPIRED"},
		"cancel none":       {nil, false, []string{"cancel", "s9"}, nil, "s9"},
		"list":              {[]client.Object{shiftOf("s1", time.Hour), shiftOf("s2", -time.Hour)}, false, []string{"list"}, []string{"AWAY-FROM", "s1", "ACTIVE", "60m", "s2", "EXPIRED", "power"}, ""},
		"list the active":   {[]client.Object{shiftOf("s2", -time.Hour)}, false, []string{"list", "--active"}, []string{""}, ""},
		"list in yaml":      {[]client.Object{shiftOf("s1", time.Hour)}, false, []string{"list", "-o", "yaml"}, []string{"kind: List", "kind: ZonalShift"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := clitest.NewBench(t, interceptor.Funcs{}, shiftable(!c.off, c.there...)...)
			s := &zonalShiftCommand{Options: b.O, planes: b.Planes, now: func() time.Time { return clitest.Noon }, region: func(*terminal.Options) (region.Region, error) { return region.Find("us-east-1") }}
			cmd := map[string]func() *cobra.Command{"start": s.start, "update": s.update, "cancel": s.cancel, "list": s.list}[c.args[0]]()
			err := b.Run(t.Context(), cmd, c.args[1:]...)
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v, want %q", err, c.fails)
			}
			for _, part := range c.says {
				if !strings.Contains(b.Out.String(), part) {
					t.Errorf("it says %q, want %q", b.Out.String(), part)
				}
			}
		})
	}
}
