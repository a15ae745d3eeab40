// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"context"
	"strings"
	"testing"
)

// A profile that kubectl made with a public subnet gets no machine there, and its pods say why, until the subnet is private.
func TestPublicSubnet(t *testing.T) {
	w := newWorld(t)
	gateway := "igw-1"
	w.pods.Public = func(context.Context, string, string) (string, string, error) { return "rtb-1", gateway, nil }
	w.settle()
	w.run("p", "uid-of-p", nil)
	w.settle()
	if n := len(w.machines()); n != 0 {
		t.Fatalf("%d machines were made", n)
	}
	const want = "Subnet subnet-a provided in Fargate Profile jobs is not a private subnet: its route table rtb-1 has a route to the internet gateway igw-1; name subnets without one"
	if says := why(w.pod("p")); !strings.Contains(says, want) {
		t.Errorf("the pod says %q", says)
	}
	gateway, w.now = "", w.now.Add(refusedAgain)
	w.settle()
	if n := len(w.machines()); n != 1 {
		t.Errorf("%d machines", n)
	}
}
