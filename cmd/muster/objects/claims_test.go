// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/internal/machine/capacity"
)

// The command says what new local machines will claim of the host before it makes them. It says nothing of machines
// that exist or run no pods.
func TestClaimsAreToldBefore(t *testing.T) {
	t.Parallel()
	host := func() capacity.Host { return capacity.Host{CPUs: 2, Memory: 4 << 30} }
	scale := func(b *clitest.Bench) *cobra.Command {
		return (&scaleCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond, host: host}).command()
	}
	create := func(b *clitest.Bench) *cobra.Command {
		return (&createCommand{Options: b.O, planes: b.Planes, interval: time.Millisecond, host: host}).command()
	}
	for _, test := range []struct {
		command func(*clitest.Bench) *cobra.Command
		args    []string
		want    string
	}{
		{scale, []string{"default", "99", "--max", "99"}, "The host will be overcommitted: 99 local nodes together claim 198 CPUs and 396.0 GiB of memory; the host has 2 CPUs and 4.0 GiB.\n"},
		{scale, []string{"default", "1"}, ""},
		{scale, []string{"default", "2"}, ""},
		{create, []string{"web", "--nodes", "2"}, "The host will be overcommitted: 4 local nodes together claim 8 CPUs and 16.0 GiB of memory; the host has 2 CPUs and 4.0 GiB.\n"},
		{create, []string{"none", "--nodes", "0"}, ""},
		{create, []string{"many", "--nodes", "100", "--provider", "simulated"}, ""},
		{create, []string{"web", "--nodes", "2", "--dry-run=client", "--cluster", "home"}, ""},
	} {
		b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
		if err := b.Run(t.Context(), test.command(b), test.args...); err != nil {
			t.Errorf("%v: %v", test.args, err)
		}
		if got := b.Err.String(); got != test.want {
			t.Errorf("%v said %q, want %q", test.args, got, test.want)
		}
	}
}

// A group of local machines grows beyond its few machines only if somebody says so.
func TestScaleBeyondTheMost(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	clitest.WantErr(t, b.Run(t.Context(), scaleOf(b), "default", "99"), `nodegroup "default" has at most 5 machines (spec.scalingConfig.maxSize): take --nodes 5, or --max 99 as well`, false)
	for _, test := range []struct {
		args []string
		want int32
	}{
		{[]string{"one"}, 5},
		{[]string{"seven", "--nodes", "7"}, 7},
		{[]string{"eight", "--min", "8"}, 8},
		{[]string{"three", "--max", "3"}, 3},
		{[]string{"many", "--provider", "simulated"}, 5000},
	} {
		if err := b.Run(t.Context(), createOf(b), test.args...); err != nil {
			t.Fatal(err)
		}
		if err := b.Run(t.Context(), createOf(b), test.args...); err != nil {
			t.Errorf("%v, again: %v", test.args, err)
		}
		var group v1alpha1.NodeGroup
		if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "home", Name: test.args[0]}, &group); err != nil || group.Spec.ScalingConfig.MaxSize != test.want {
			t.Errorf("%v: maxSize %d, want %d; %v", test.args, group.Spec.ScalingConfig.MaxSize, test.want, err)
		}
	}
}
