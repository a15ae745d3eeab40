// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/node/nodeconfig"
)

func TestCatalogue(t *testing.T) {
	all := All()
	if len(all) < 15 || len(all) > 20 {
		t.Errorf("there are %d types", len(all))
	}
	// What EC2 names a size has so many processors in every family, and each family so much memory for one; the small
	// burstable ones differ.
	vcpus := map[string]int{"small": 2, "medium": 2, "large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16}
	memory := map[byte]int64{'t': 4, 'm': 4, 'c': 2, 'r': 8}
	seen := map[string]bool{}
	for _, kind := range all {
		family, size, _ := strings.Cut(kind.Name, ".")
		if seen[kind.Name] {
			t.Errorf("%s is there twice", kind.Name)
		}
		seen[kind.Name] = true
		want := memory[family[0]] * int64(kind.VCPUs) << 10
		switch size {
		case "small":
			want = 2 << 10
		case "medium":
			want = 4 << 10
		}
		if kind.VCPUs != vcpus[size] || kind.MemoryMiB != want || kind.VCPUs != kind.Cores*ThreadsPerCore || kind.MemoryBytes() != want<<20 {
			t.Errorf("%+v: want %d processors and %d MiB", kind, vcpus[size], want)
		}
		if kind.Burstable != (family[0] == 't') || kind.Network == "" || kind.ClockGHz < 2 || (kind.Manufacturer == "AMD") != strings.HasSuffix(family, "a") {
			t.Errorf("%+v", kind)
		}
		if strings.Contains(family, "g") {
			t.Errorf("%s is of arm64", kind.Name)
		}
	}
	for _, name := range []string{Default, "t3.small", "m5.4xlarge"} {
		if !seen[name] {
			t.Errorf("%s is not there", name)
		}
	}
}

// Each type has figures of EBS, and throughput is bandwidth in other units, as in EC2's own answers.
func TestEBS(t *testing.T) {
	for _, kind := range All() {
		e := kind.EBS
		if e.BaselineMbps < 1 || e.BaselineIOPS < 1 || e.MaximumMbps < e.BaselineMbps || e.MaximumIOPS < e.BaselineIOPS {
			t.Errorf("%s has %+v", kind.Name, e)
		}
	}
	for name, want := range map[string]struct {
		ebs               EBS
		baseline, maximum float64
	}{
		"t3.medium":  {EBS{347, 2000, 2085, 11800}, 43.375, 260.625},
		"m5.large":   {EBS{650, 3600, 4750, 18750}, 81.25, 593.75},
		"m5.4xlarge": {EBS{4750, 18750, 4750, 18750}, 593.75, 593.75},
	} {
		kind, err := Find(name)
		if err != nil || kind.EBS != want.ebs || kind.EBS.BaselineMBps() != want.baseline || kind.EBS.MaximumMBps() != want.maximum {
			t.Errorf("%s has %+v: %v and %v MB/s, want %+v", name, kind.EBS, kind.EBS.BaselineMBps(), kind.EBS.MaximumMBps(), want)
		}
	}
}

// The table that kubelets' limits come from has every type, and there is one formula.
func TestMaxPods(t *testing.T) {
	for _, kind := range All() {
		pods, source, err := nodeconfig.MaxPods(kind.Name, "")
		if interfaces, addresses := kind.Interfaces(); err != nil || interfaces < 2 || addresses < 4 || pods != kind.MaxPods() {
			t.Errorf("%s: %d pods here and %d by %s, %v", kind.Name, kind.MaxPods(), pods, source, err)
		}
	}
	// amazon-eks-ami's file of figures, which EKS's documentation repeats.
	for name, want := range map[string]int32{"t3.small": 11, "t3.medium": 17, "t3.large": 35, "m5.large": 29, "m5.xlarge": 58, "m5.4xlarge": 234, "c5.large": 29, "r5.xlarge": 58} {
		kind, err := Find(name)
		if err != nil || kind.MaxPods() != want {
			t.Errorf("%s takes %d pods, want %d (%v)", name, kind.MaxPods(), want, err)
		}
	}
}

func TestFind(t *testing.T) {
	for _, name := range []string{"", "local", "T3.medium", "t4g.medium", "m5.large "} {
		if kind, err := Find(name); err == nil || !strings.Contains(err.Error(), "t3.small, ") {
			t.Errorf("%q is %+v, %v", name, kind, err)
		}
	}
	changed := All()
	changed[0].VCPUs = 99
	if slices.Equal(changed, All()) {
		t.Error("a caller can change the catalogue")
	}
}
