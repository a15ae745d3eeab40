// SPDX-License-Identifier: Apache-2.0

// Package ec2resourcetest has what tests of EC2's nouns stand on: the resources of an account in memory, and the golden
// file of a noun's filters. A difference fails the test.
package ec2resourcetest

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/release"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// New has the objects as the resources of an account in eu-west-1. No address of a subnet is used.
func New(t *testing.T, objects ...client.Object) *ec2resource.EC2 {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	ec2, err := ec2resource.New(ec2resource.Config{
		Account: awsresource.Account{
			Management: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
			Pages:      nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1",
		},
		Usage:      func(string) ([]machine.Usage, error) { return nil, nil },
		Unbuilt:    func(release.Release) string { return "" },
		HostRanges: func() ([]netip.Prefix, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return ec2
}

// Golden compares a file with the filters of a noun: the values that each item has under each name, and at the end the
// names that no item has a value for. A value that follows itself is there once. The flag -update writes the file.
func Golden[T any](t *testing.T, path string, n ec2resource.Noun[T], items []T) {
	t.Helper()
	var b, never strings.Builder
	fmt.Fprintf(&b, "tags %v\n", n.Tags != nil)
	for _, name := range slices.Sorted(slices.Values(n.Fields.Rules(n.Rules.Names...).Names)) {
		var lines strings.Builder
		for i := range items {
			if values := slices.Compact(n.Under(&items[i], name)); len(values) > 0 {
				fmt.Fprintf(&lines, "\t%d %s %q\n", i, n.ID(&items[i]), values)
			}
		}
		if lines.Len() == 0 {
			fmt.Fprintf(&never, "\t%s\n", name)
			continue
		}
		fmt.Fprintf(&b, "%s\n%s", name, lines.String())
	}
	fmt.Fprintf(&b, "never\n%s", never.String())
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("filters differ from %s (-want +got):\n%s", path, diff)
	}
}
