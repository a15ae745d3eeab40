// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// machinesAreNodesAtHome signs a token for the other cluster with a machine's credentials, as whoever is root on the
// machine can: both clusters take the role of their machines for that of nodes. Then it puts a Node of the machine's
// name there, as one that was let in would.
func machinesAreNodesAtHome(t *testing.T, muster, blue side) {
	w := newIAM(t, muster.installation)
	all := muster.mustKubectl("--context", "muster-management", "get", "machines", "-o",
		`jsonpath={range .items[?(@.spec.clusterName=="muster")]}{.metadata.name} {.status.nodeName} {.spec.instanceProfile}{"\n"}{end}`)
	first := strings.Fields(all)
	if len(first) < 3 {
		t.Fatalf("cluster muster has the machines %q", all)
	}
	machine, node := first[0], first[1]
	keys := w.machineKeys(machine, first[2])
	if who, err := muster.whoami(t.Context(), w.token(keys, "muster")); err != nil || who.Username != "system:node:"+node {
		t.Errorf("at home machine %s is %q: %v", machine, who.Username, err)
	}
	// So that it is not refused for want of an entry.
	role := "arn:aws:iam::" + iamAccount + ":role/" + first[2]
	if entries := blue.mustKubectl("--context", "blue", "get", "accessentries", "-o", "jsonpath={.items[*].spec.principalARN}"); !strings.Contains(entries, role) {
		t.Logf("cluster blue has no entry of %s, and gets one", role)
		blue.apply(`{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: foreign}, spec: {principalARN: "`+role+`", type: EC2_LINUX}}`, "--context=blue")
	}
	blue.eventually("the authenticator says which rule refuses the machine", func() error {
		switch who, err := blue.whoami(t.Context(), w.token(keys, "blue")); {
		case err == nil:
			t.Fatalf("machine %s of cluster muster is %q at cluster blue", machine, who.Username)
		case !unauthorized(err):
			return err
		}
		log, _ := blue.muster("logs", "authenticator", "--cluster", "blue", "--tail", "50")
		if !anyLine(log, `msg="access denied"`, "rule=machine-cluster", "cause=M-IAM-88", "instance="+machine, "was launched for cluster", "fix=") {
			return fmt.Errorf("the log has no such line:\n%s", log)
		}
		return nil
	})
	blue.aNodeOfAnotherIsDeleted(node)
}

// aNodeOfAnotherIsDeleted makes a Node of the name of another cluster's machine twice, and one of people's own, which
// stays.
func (s side) aNodeOfAnotherIsDeleted(name string) {
	s.t.Helper()
	const own = "peoples-own"
	object := func(name string) string { return "{apiVersion: v1, kind: Node, metadata: {name: " + name + "}}" }
	s.apply(object(own), "--context="+s.cluster)
	for range 2 {
		s.apply(object(name), "--context="+s.cluster)
		s.eventually("the Node of another cluster's machine is deleted", func() error {
			if _, err := s.kubectl("--context", s.cluster, "get", "node", name); err == nil {
				return errors.New("it is there")
			} else if !strings.Contains(err.Error(), "NotFound") {
				return err
			}
			return nil
		})
	}
	s.eventually("an Event says so", func() error {
		events := s.mustKubectl("--context", s.cluster, "get", "events", "-A", "-o", `jsonpath={range .items[*]}{.reason} {.involvedObject.name} {.message}{"\n"}{end}`)
		if !anyLine(events, "NotAMachine "+name, "cluster "+s.cluster+" has no such machine") {
			return errors.New(events)
		}
		return nil
	})
	s.mustKubectl("--context", s.cluster, "delete", "node", own)
}
