// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
)

// joined are nodes that came in by a role, the one after the other.
func joined(n int) []joinlog.Way {
	var joins []joinlog.Way
	for i := range n {
		ms := func(n int) time.Duration { return time.Duration(n+i*100) * time.Millisecond }
		joins = append(joins, joinlog.Way{Node: fmt.Sprintf("ip-172-31-0-%d.ec2.internal", i+5), Machine: fmt.Sprintf("i-%017x", i), Steps: map[v1alpha1.JoinStep]time.Duration{
			v1alpha1.StepLaunched: 0, v1alpha1.StepAPIReached: ms(1126), v1alpha1.StepNodeRegistered: ms(1130), v1alpha1.StepReady: ms(1290),
			v1alpha1.StepServingCSRCreated: ms(1996), v1alpha1.StepServingCSRApproved: ms(2009), v1alpha1.StepServingCSRIssued: ms(2016),
		}})
	}
	return joins
}

func TestPrintJoins(t *testing.T) {
	t.Parallel()
	unknown := []joinlog.Way{{Node: "ip-172-31-0-5.ec2.internal", Machine: "i-1"}} // its audit log is lost
	for name, test := range map[string]struct {
		print func(*bytes.Buffer) error
		want  string
	}{
		"a line per node": {func(b *bytes.Buffer) error { return printJoins(b, joined(2)) }, `NODE                         MACHINE               READY
ip-172-31-0-5.ec2.internal   i-00000000000000000   1.3 s
ip-172-31-0-6.ec2.internal   i-00000000000000001   1.4 s
`},
		"many":               {func(b *bytes.Buffer) error { return printJoins(b, joined(100)) }, "100 nodes Ready after p50 6.3 s, p90 10.3 s, p99 11.2 s, max 11.2 s\n"},
		"none":               {func(b *bytes.Buffer) error { return printJoins(b, nil) }, ""},
		"nothing known":      {func(b *bytes.Buffer) error { return printJoins(b, unknown) }, "NODE                         MACHINE   READY\nip-172-31-0-5.ec2.internal   i-1       -\n"},
		"every step of none": {func(b *bytes.Buffer) error { return printSteps(b, nil) }, ""},
		"the steps that it took": {func(b *bytes.Buffer) error { return printSteps(b, joined(2)) }, `NODE                         MACHINE               API    REGISTERED   SERVING CSR   APPROVED   ISSUED   READY
ip-172-31-0-5.ec2.internal   i-00000000000000000   1126   1130         1996          2009       2016     1290
ip-172-31-0-6.ec2.internal   i-00000000000000001   1226   1230         2096          2109       2116     1390
Milliseconds from the launch of the machine. The serving certificate comes after Ready when the kubelet asks for it late.
`},
		"the steps of many": {func(b *bytes.Buffer) error { return printSteps(b, joined(30)) }, `NODE        MACHINE   API    REGISTERED   SERVING CSR   APPROVED   ISSUED   READY
p50 of 30   -         2626   2630         3496          3509       3516     2790
p90 of 30   -         3826   3830         4696          4709       4716     3990
p99 of 30   -         4026   4030         4896          4909       4916     4190
max of 30   -         4026   4030         4896          4909       4916     4190
Milliseconds from the launch of the machine. The serving certificate comes after Ready when the kubelet asks for it late.
`},
	} {
		var out bytes.Buffer
		if err := test.print(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
