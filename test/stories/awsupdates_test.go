// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shownUpdate is what the stories look at of an update.
type shownUpdate struct {
	ID, Status, Type string
	Errors           []struct{ ErrorCode, ErrorMessage string }
}

// update sends a change, and returns the update that it is answered with.
func (w *iam) update(args ...string) shownUpdate {
	w.t.Helper()
	var made struct{ Update shownUpdate }
	w.mustAWS(&made, append([]string{"eks"}, args...)...)
	return made.Update
}

// updatesOfCluster changes a cluster of mode API_AND_CONFIG_MAP in each way that there is.
func (w *iam) updatesOfCluster(cluster, kubeconfig string) {
	w.t.Helper()
	change := func(args ...string) shownUpdate {
		return w.update(append([]string{"update-cluster-config", "--name", cluster}, args...)...)
	}
	w.updated(change("--logging", `{"clusterLogging":[{"types":["api","audit"],"enabled":true}]}`), cluster)
	w.updated(change("--resources-vpc-config", "endpointPrivateAccess=true"), cluster)
	policy := change("--upgrade-policy", "supportType=STANDARD")
	w.updated(policy, cluster)
	var list struct{ UpdateIDs []string }
	if w.mustAWS(&list, "eks", "list-updates", "--name", cluster); len(list.UpdateIDs) != 3 || !slices.Contains(list.UpdateIDs, policy.ID) {
		w.t.Errorf("updates %v, want 3, and %s among them", list.UpdateIDs, policy.ID)
	}
	arn := "arn:aws:eks:us-east-1:" + iamAccount + ":cluster/" + cluster
	w.mustAWS(nil, "eks", "tag-resource", "--resource-arn", arn, "--tags", "team=b,cost=1")
	w.mustAWS(nil, "eks", "untag-resource", "--resource-arn", arn, "--tag-keys", "cost")
	shown := w.describeCluster(cluster)
	if logs := shown.Logging.ClusterLogging; len(logs) == 0 || strings.Join(logs[0].Types, " ") != "api audit" || !logs[0].Enabled || !shown.ResourcesVpcConfig.EndpointPrivateAccess ||
		shown.UpgradePolicy.SupportType != "STANDARD" || len(shown.Tags) != 1 || shown.Tags["team"] != "b" {
		w.t.Errorf("%+v", shown)
	}

	w.updated(change("--deletion-protection"), cluster)
	if _, err := w.aws(w.admin, "eks", "delete-cluster", "--name", cluster); err == nil {
		w.t.Error("a protected cluster is deleted")
	}
	w.updated(change("--no-deletion-protection"), cluster)

	// Whoever aws-auth alone lets in is out once the update is Successful.
	carol := w.user("carol")
	authorized, err := w.kubectlIn(w.creator(), cluster, kubeconfig, "-n", "kube-system", "create", "configmap", "aws-auth",
		"--from-literal=mapUsers=[{\"userarn\": \"arn:aws:iam::"+iamAccount+":user/carol\", \"username\": \"carol\", \"groups\": [\"system:masters\"]}]")
	if err != nil {
		w.t.Fatal(authorized, err)
	}
	sees := func() error {
		_, err := w.kubectlIn(carol, cluster, kubeconfig, "get", "nodes")
		return err
	}
	w.eventually("carol sees nodes", sees)
	w.updated(change("--access-config", "authenticationMode=API"), cluster)
	w.eventually("carol sees nodes no more", func() error { // an API server believes a token for 10 s
		if sees() == nil {
			return errors.New("she does")
		}
		return nil
	})
	if _, err := w.aws(w.admin, "eks", "update-cluster-config", "--name", cluster, "--access-config", "authenticationMode=CONFIG_MAP"); err == nil || !strings.Contains(err.Error(), "InvalidParameterException") {
		w.t.Errorf("a mode back: %v", err)
	}
}

// updatesOfNodegroup changes a node group of one machine: its size, and what its nodes are marked with.
func (w *iam) updatesOfNodegroup(cluster, group, kubeconfig string) {
	w.t.Helper()
	of := []string{"--nodegroup-name", group}
	change := func(args ...string) shownUpdate {
		return w.update(append([]string{"update-nodegroup-config", "--cluster-name", cluster, "--nodegroup-name", group}, args...)...)
	}
	kubectl := func(args ...string) string {
		out, err := w.kubectlIn(w.creator(), cluster, kubeconfig, args...)
		if err != nil {
			w.t.Fatal(err)
		}
		return out
	}
	first := kubectl("get", "nodes", "-l", "pool=web", "-o", "name")
	kubectl("label", first, "mine=x")
	kubectl("taint", "node", strings.TrimPrefix(first, "node/"), "mine=x:PreferNoSchedule")
	w.updated(change("--labels", `{"addOrUpdateLabels":{"tier":"gold"},"removeLabels":["pool"]}`,
		"--taints", `{"addOrUpdateTaints":[{"key":"only","value":"gold","effect":"NO_SCHEDULE"}]}`), cluster, of...)
	w.updated(change("--scaling-config", "desiredSize=2"), cluster, of...)
	if status := w.nodegroupStatus(cluster, group); status != "ACTIVE" {
		w.t.Errorf("node group %s is %s after its updates", group, status)
	}
	const marks = `{range .items[*]}{.metadata.labels.tier}/{.metadata.labels.pool}/{.metadata.labels.mine}/{range .spec.taints[*]}{.key}={.value}:{.effect},{end} {end}`
	// A node that has just become Ready has upstream's taint for a moment longer, which is neither the group's nor
	// anybody's here.
	marked := func() string {
		nodes := strings.Fields(strings.ReplaceAll(kubectl("get", "nodes", "-o", "jsonpath="+marks), "node.kubernetes.io/not-ready=:NoExecute,", ""))
		slices.Sort(nodes)
		return strings.Join(nodes, " ")
	}
	if got := marked(); got != "gold///only=gold:NoSchedule, gold//x/mine=x:PreferNoSchedule,only=gold:NoSchedule," && got != "gold///only=gold:NoSchedule, gold//x/only=gold:NoSchedule,mine=x:PreferNoSchedule," {
		w.t.Errorf("nodes have %s", got)
	}

	// By kubectl it is the same.
	slug := strings.TrimSuffix(w.mustKubectl("--context", "muster-management", "get", "clusters", "-A", "-o", `jsonpath={.items[?(@.spec.name=="`+cluster+`")].metadata.namespace}`), "\n")
	w.mustKubectl("--context", "muster-management", "-n", slug, "patch", "nodegroup", group, "--type", "merge", "-p", `{"spec":{"labels":{"tier":"iron"},"taints":null}}`)
	w.eventually("both nodes have the label that kubectl set", func() error {
		return is(marked(), "iron/// iron//x/mine=x:PreferNoSchedule,")
	})
}

// updateThatWaits has a node group whose machine never becomes Ready: it is UPDATING, takes no other update, and says
// why.
func (w *iam) updateThatWaits(cluster string) {
	w.t.Helper()
	const group = "late"
	slug := strings.TrimSuffix(w.mustKubectl("--context", "muster-management", "get", "clusters", "-A", "-o", `jsonpath={.items[?(@.spec.name=="`+cluster+`")].metadata.namespace}`), "\n")
	path := filepath.Join(w.t.TempDir(), "late.yaml")
	manifest := "apiVersion: muster.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: late, namespace: " + slug + "}\n" +
		"spec: {name: late, scalingConfig: {desiredSize: 0, maxSize: 2}, launchTemplate: {userData: \"#!/bin/sh\\nexit 7\\n\"}}\n"
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.mustKubectl("--context", "muster-management", "apply", "-f", path)
	u := w.update("update-nodegroup-config", "--cluster-name", cluster, "--nodegroup-name", group, "--scaling-config", "desiredSize=1")
	if status := w.nodegroupStatus(cluster, group); status != "UPDATING" {
		w.t.Errorf("node group %s is %s while update %s runs", group, status, u.ID)
	}
	if _, err := w.aws(w.admin, "eks", "update-nodegroup-config", "--cluster-name", cluster, "--nodegroup-name", group, "--scaling-config", "maxSize=3"); err == nil || !strings.Contains(err.Error(), "(ResourceInUseException)") {
		w.t.Errorf("another update meanwhile: %v", err)
	}
	describes := w.eksGets(nodegroupPath(cluster, group))
	w.eventually("the health says why", func() error {
		var shown struct {
			Nodegroup struct {
				Health struct {
					Issues []struct{ Code, Message string }
				}
			}
		}
		if err := describes(&shown); err != nil {
			return err
		}
		if issues := shown.Nodegroup.Health.Issues; len(issues) != 1 || issues[0].Code != "NodeCreationFailure" || !strings.Contains(issues[0].Message, "7") {
			return fmt.Errorf("issues %+v", issues)
		}
		return nil
	})
	w.mustAWS(nil, "eks", "delete-nodegroup", "--cluster-name", cluster, "--nodegroup-name", group)
	w.eksGone(nodegroupPath(cluster, group))
}

// newTemplateVersion replaces the machine of a node group by one of another version of its launch template, by
// eviction.
func (w *iam) newTemplateVersion(cluster, subnet, kubeconfig string) {
	w.t.Helper()
	const group = "rolled"
	kubectl := func(args ...string) string {
		out, err := w.kubectlIn(w.creator(), cluster, kubeconfig, args...)
		if err != nil {
			w.t.Fatal(err)
		}
		return out
	}
	w.mustAWS(nil, "ec2", "create-launch-template", "--launch-template-name", "rolled", "--launch-template-data", `{"InstanceType":"t3.small"}`)
	w.mustAWS(nil, "eks", "create-nodegroup", "--cluster-name", cluster, "--nodegroup-name", group, "--node-role", "arn:aws:iam::"+iamAccount+":role/muster-node",
		"--subnets", subnet, "--scaling-config", "minSize=0,maxSize=2,desiredSize=1", "--labels", "pool=rolled", "--launch-template", "name=rolled,version=1")
	w.eksBecomes(nodegroupPath(cluster, group), "ACTIVE")
	node := func(shown string) string {
		name, _, _ := strings.Cut(shown, "/")
		return name
	}
	const shown = `jsonpath={range .items[*]}{.metadata.name}/{.metadata.labels.node\.kubernetes\.io/instance-type}/{.spec.unschedulable} {end}`
	before := strings.Fields(kubectl("get", "nodes", "-l", "pool=rolled", "-o", shown))
	if len(before) != 1 || !strings.HasSuffix(before[0], "/t3.small/") {
		w.t.Fatalf("nodes %v", before)
	}
	w.mustAWS(nil, "ec2", "create-launch-template-version", "--launch-template-name", "rolled", "--launch-template-data", `{"InstanceType":"t3.medium"}`)
	u := w.update("update-nodegroup-version", "--cluster-name", cluster, "--nodegroup-name", group, "--launch-template", "name=rolled,version=2")
	w.updated(u, cluster, "--nodegroup-name", group)
	after := strings.Fields(kubectl("get", "nodes", "-l", "pool=rolled", "-o", shown))
	if len(after) != 1 || !strings.HasSuffix(after[0], "/t3.medium/") || node(after[0]) == node(before[0]) {
		w.t.Errorf("nodes %v, before %v", after, before)
	}
	w.mustAWS(nil, "eks", "delete-nodegroup", "--cluster-name", cluster, "--nodegroup-name", group)
	w.eksGone(nodegroupPath(cluster, group))
}
