// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

// TestKarpenterDrift has Karpenter replace its machines since they are not of the image that its node class chooses any
// more: first as there is a newer image, then as the cluster is of the next minor. Karpenter and the service are killed
// while machines are replaced: no machine is left over, and no pod is without a machine.
//
//story:about addons/karpenter aws/ami cloud/ec2/fleet cloud/ec2/instance cloud/ec2/offering cloud/ssm cluster/updatecontroller
//story:needs karpenter kubernetes MINOR=1.37
func TestKarpenterDrift(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	k := &karpenter{newIAM(t, i), "default"}
	k.install()
	k.mustKubectl("patch", "nodepool", "default", "--type=merge", "-p", `{"spec":{"disruption":{"budgets":[{"nodes":"100%"}]}}}`)
	for _, step := range []struct {
		name string
		run  func(*karpenter)
	}{
		{"a newer image", (*karpenter).newerImage},
		{"a newer minor and kills in the middle", (*karpenter).newerMinor},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(&karpenter{k.step(t), k.pool}) }) {
			return // the next step would begin with what this one left
		}
	}
}

// choosesImages has the node class choose images by a term.
func (k *karpenter) choosesImages(term string) {
	k.t.Helper()
	k.mustKubectl("patch", "ec2nodeclass", "default", "--type=merge", "-p", `{"spec":{"amiFamily":"AL2023","amiSelectorTerms":[`+term+`]}}`)
}

// imagesOf are the images of the NodePool's instances that have not ended, by the instances' ids.
func (k *karpenter) imagesOf() map[string]string {
	k.t.Helper()
	out, err := k.aws(k.admin, "ec2", "describe-instances", "--filters", "Name=tag:karpenter.sh/nodepool,Values=default", "Name=instance-state-name,Values=pending,running,stopping,stopped",
		"--query", "Reservations[].Instances[].[InstanceId,ImageId]", "--output", "text")
	if err != nil {
		k.t.Fatal(err)
	}
	images := map[string]string{}
	for line := range strings.Lines(out) {
		if id, image, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			images[id] = image
		}
	}
	return images
}

// replaced waits until all machines of before are gone, and as many of an image are in their place.
func (k *karpenter) replaced(before map[string]string, image string) time.Duration {
	k.t.Helper()
	return k.eventually(fmt.Sprintf("%d machines of %s are in the place of %v", len(before), image, before), func() error {
		now := k.imagesOf()
		for id, is := range now {
			if _, old := before[id]; old || is != image {
				return fmt.Errorf("machines %v", now)
			}
		}
		if len(now) != len(before) {
			return fmt.Errorf("machines %v", now)
		}
		return nil
	})
}

// newerImage has machines of an image that is not the newest any more replaced.
func (k *karpenter) newerImage() {
	is, earlier := release.Default(), release.Default()
	earlier.Version = is.Earlier[0]
	k.choosesImages(fmt.Sprintf(`{"id":%q}`, ami.OfRelease(earlier)))
	k.wants("kept", 2, "{cpu: 500m, memory: 256Mi}")
	k.runs("kept", 2)
	k.owned(2)
	before := k.imagesOf()
	for id, image := range before {
		if image != ami.OfRelease(earlier) {
			k.t.Fatalf("machine %s is of image %s, and not of %s", id, image, ami.OfRelease(earlier))
		}
	}
	k.choosesImages(`{"alias":"al2023@latest"}`)
	k.t.Logf("a newer image to all machines of it: %v", k.replaced(before, ami.OfRelease(is)).Round(100*time.Millisecond))
	k.runs("kept", 2)
	k.owned(2)
}

// newerMinor upgrades the cluster, whose newest image is another one then. Karpenter finds the version when it starts, and
// every five minutes. Then it and the service are killed, at moments and in an order by chance, while machines are
// replaced.
func (k *karpenter) newerMinor() {
	seed := uint64(time.Now().UnixNano())
	k.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	next, before := minorAfter(release.Default()), k.imagesOf()
	k.installation.update("minor", fmt.Sprintf("type: VersionUpdate, change: {version: %q}", next.Minor()))
	k.killsKarpenter()
	k.eventually("a machine is on its way in the place of another", func() error {
		out, err := k.kubectl("get", "nodeclaims", "-o", "name")
		if err == nil && len(strings.Fields(out)) <= len(before) {
			err = errors.New(out)
		}
		return err
	})
	began, kills := time.Now(), []func(){func() { k.kill("serve") }, k.killsKarpenter}
	random.Shuffle(len(kills), func(a, b int) { kills[a], kills[b] = kills[b], kills[a] })
	for n, kill := range kills {
		pause := time.Duration(random.IntN(6000)) * time.Millisecond
		k.t.Logf("kill %d comes after %v", n+1, pause)
		<-time.After(pause)
		kill()
	}
	k.replaced(before, ami.OfRelease(next))
	k.t.Logf("a newer minor to all machines of it: %v after the first of them was on its way", time.Since(began).Round(100*time.Millisecond))
	k.runs("kept", 2)
	machines := k.owned(2)
	versions := strings.Fields(k.mustKubectl("get", "nodes", "-l", "karpenter.sh/nodepool=default", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}"))
	if slices.Sort(versions); !slices.Equal(slices.Compact(versions), []string{next.Version}) {
		k.t.Errorf("the nodes of %v are of %v, and not of %s", slices.Sorted(maps.Keys(machines)), versions, next.Version)
	}
	k.empties()
}

// killsKarpenter ends Karpenter's process in the hardest way.
func (k *karpenter) killsKarpenter() {
	k.t.Helper()
	node := k.mustKubectl("get", "pods", "--namespace=kube-system", "-l", "k8s-app=karpenter", "-o", "jsonpath={.items[0].spec.nodeName}")
	k.eventually("Karpenter is killed", func() error { // one that was killed before may just be starting again
		_, said, err := k.try("exec", node, "--", "sh", "-c", "kill -9 $(grep -lx karpenter /proc/[0-9]*/comm | cut -d/ -f3)")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return err
	})
}
