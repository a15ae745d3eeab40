// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// userDataThatFails has machines launched whose user data fails in the ways in which it fails on EKS, where such a node
// does not come. The condition of the Machine, an Event, muster status and muster get machines say which part it was.
func userDataThatFails(t *testing.T, i *installation) {
	for name, test := range map[string]struct{ userData, reason, want string }{
		"script": {
			"#!/bin/sh\necho mounting; echo 'no disk' >&2; exit 4\n", "UserDataFailed",
			"the script user data, part 1 failed: exit status 4; its last lines: mounting / no disk",
		},
		"typing-error": {
			"#!/bin/sh\n/etc/eks/bootstrap.sh muster --kubelet-extra-arg '--node-labels=team=a'\ntrue\n", "UserDataFailed",
			"bootstrap.sh was refused: unknown flag --kubelet-extra-arg",
		},
		"refused-label": {
			"#!/bin/sh\n/etc/eks/bootstrap.sh muster --kubelet-extra-args '--node-labels=node-role.kubernetes.io/worker=true'\ntrue\n", "UserDataFailed",
			"bootstrap.sh was refused: ",
		},
		"cloud-config": {
			"#cloud-config\npackages: [jq]\n", "UserDataFailed",
			"user data, part 1 is text/cloud-config, which is not carried out here",
		},
		"hangs": {
			"#!/bin/sh\necho waiting for the lock\nsleep 500\n", "UserDataSlow",
			"the script user data, part 1 has been running since ",
		},
		"kubelet": {
			"{apiVersion: node.eks.aws/v1alpha1, kind: NodeConfig, spec: {kubelet: {config: {featureGates: {NoSuchGate: true}}}}}", "NodeConfigRefused",
			"NoSuchGate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := i.in(t)
			group := "fails-" + name
			userData, err := json.Marshal(test.userData)
			if err != nil {
				t.Fatal(err)
			}
			i.apply(fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: %[1]s}, spec: {name: %[1]s, scalingConfig: {desiredSize: 1}, launchTemplate: {userData: %[2]s}}}", group, userData),
				"--context=muster-management")
			management := func(args ...string) (string, error) {
				return i.kubectl(append([]string{"--context=muster-management"}, args...)...)
			}
			var machine string
			i.eventually("the machine's condition says so", func() error {
				said, err := management("get", "machines", "-l", "muster.dev/nodegroup="+group, "-o", `jsonpath={.items[0].metadata.name} {.items[0].status.conditions[?(@.type=="Ready")].reason} {.items[0].status.conditions[?(@.type=="Ready")].message}`)
				if err != nil {
					return err
				}
				machine, _, _ = strings.Cut(said, " ")
				if !strings.HasPrefix(said, machine+" "+test.reason) || !strings.Contains(said, test.want) {
					return fmt.Errorf("it says %s", said)
				}
				return nil
			})
			i.eventually("an Event and the group's condition say so", func() error {
				events, err := management("get", "events", "-A", "-o", `jsonpath={range .items[*]}{.regarding.name}{.involvedObject.name} {.reason} {.note}{.message}{"\n"}{end}`)
				if err == nil && !anyLine(events, machine, test.reason, test.want) {
					err = fmt.Errorf("the events are\n%s", events)
				}
				if err != nil {
					return err
				}
				said, err := management("get", "-n=muster", "nodegroup", group, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason} {.status.conditions[?(@.type=="Ready")].message}`)
				if err == nil && (!strings.HasPrefix(said, "NodeCreationFailure") || !strings.Contains(said, test.want)) {
					err = fmt.Errorf("the group says %s", said)
				}
				return err
			})
			status, _, _ := i.try("status")
			machines, _, _ := i.try("get", "machines")
			for command, said := range map[string]string{"status": status, "get machines": machines} {
				if !anyLine(said, machine, test.want) {
					t.Errorf("muster %s says\n%s", command, said)
				}
			}
			if nodes := i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].spec.providerID}"); strings.Contains(nodes, machine) {
				t.Errorf("the machine is a node")
			}
			i.muster("delete", "nodegroup", group)
		})
	}
}
