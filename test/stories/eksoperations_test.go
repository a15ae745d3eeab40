// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// operations is a cluster whose EKS operations are looked at in the cluster.
type operations struct {
	*iam
	kubeconfig string // by aws eks update-kubeconfig
}

// TestEKSOperationsHaveEffects calls operations of EKS by the AWS CLI, and looks for what they say or change in the
// cluster itself: in the one that there is, in one that they make, and in the first again, whose machine and whose
// authorities they take away. The page docs/aws-effects.md says which operation is seen where.
//
//story:about cloud/eks cluster/updatecontroller machine/nodegroup
func TestEKSOperationsHaveEffects(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	o := &operations{newIAM(t, i), filepath.Join(t.TempDir(), "kubeconfig")}
	if _, err := o.aws(o.admin, "eks", "update-kubeconfig", "--name", "muster", "--kubeconfig", o.kubeconfig); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		look func(*operations)
	}{
		{"the version that runs", (*operations).version},
		{"node groups and their nodes", (*operations).nodesOfGroups},
		{"tags decide", (*operations).tagsDecide},
		{"access entries let in", (*operations).entries},
		{"access policies give rights", (*operations).policies},
		{"add-ons", (*operations).addons},
		{"insights", (*operations).insights},
		{"security groups of the API server", (*operations).securityGroups},
		{"a rollout is cancelled", (*operations).cancelled},
		{"by the AWS CLI from nothing", (*operations).clusterByTheAWSCLI},
		{"certificate authorities", (*operations).certificateAuthorities},
	} {
		t.Run(step.name, func(t *testing.T) { step.look(&operations{o.step(t), o.kubeconfig}) })
	}
}

// management runs kubectl against the management plane.
func (o *operations) management(args ...string) string {
	o.t.Helper()
	return o.mustKubectl(append([]string{"--context", "muster-management", "-n", "muster"}, args...)...)
}

// sorted has what a command printed, in order, so that lists can be compared.
func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// version has DescribeClusterVersions tell of the version that the API server says it is.
func (o *operations) version() {
	var served struct{ ServerVersion struct{ GitVersion string } }
	if err := json.Unmarshal([]byte(o.mustKubectl("version", "-o", "json")), &served); err != nil {
		o.t.Fatal(err)
	}
	var listed struct {
		ClusterVersions []struct {
			ClusterVersion, KubernetesPatchVersion string
			DefaultVersion                         bool
		}
	}
	o.mustAWS(&listed, "eks", "describe-cluster-versions", "--default-only")
	if len(listed.ClusterVersions) != 1 || "v"+listed.ClusterVersions[0].KubernetesPatchVersion != served.ServerVersion.GitVersion {
		o.t.Errorf("versions %+v, and the API server is %s", listed.ClusterVersions, served.ServerVersion.GitVersion)
	}
}

// nodesOfGroups compares ListNodegroups and DescribeNodegroup with the nodes.
func (o *operations) nodesOfGroups() {
	var list struct{ Nodegroups []string }
	o.mustAWS(&list, "eks", "list-nodegroups", "--cluster-name", "muster")
	if nodes := o.mustKubectl("get", "nodes", "-o", `jsonpath={.items[*].metadata.labels.muster\.dev/nodegroup}`); strings.Join(list.Nodegroups, " ") != nodes {
		o.t.Errorf("node groups %v, and the nodes are of %s", list.Nodegroups, nodes)
	}
	var shown struct {
		Nodegroup struct {
			Status, Version string
			Subnets         []string
			ScalingConfig   struct{ DesiredSize int }
			Resources       struct{ AutoScalingGroups []struct{ Name string } }
		}
	}
	o.mustAWS(&shown, "eks", "describe-nodegroup", "--cluster-name", "muster", "--nodegroup-name", "default")
	group := shown.Nodegroup
	var of struct {
		AutoScalingGroups []struct {
			Instances []struct{ InstanceID string }
		}
	}
	if len(group.Resources.AutoScalingGroups) != 1 {
		o.t.Fatalf("%+v", group)
	}
	o.mustAWS(&of, "autoscaling", "describe-auto-scaling-groups", "--auto-scaling-group-names", group.Resources.AutoScalingGroups[0].Name)
	node := o.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].spec.providerID} {.items[*].status.nodeInfo.kubeletVersion}")
	if len(of.AutoScalingGroups) != 1 || len(of.AutoScalingGroups[0].Instances) != group.ScalingConfig.DesiredSize || !strings.Contains(node, of.AutoScalingGroups[0].Instances[0].InstanceID) ||
		!strings.Contains(node, " v"+group.Version+".") || group.Status != "ACTIVE" {
		o.t.Errorf("node group %+v with %+v, and the node %s", group, of, node)
	}
}

// tagsDecide gives a user a right that depends on a tag of the cluster, and sets the tag.
func (o *operations) tagsDecide() {
	const arn = "arn:aws:eks:us-east-1:" + iamAccount + ":cluster/muster"
	erin := o.user("erin")
	o.mustAWS(nil, "iam", "put-user-policy", "--user-name", "erin", "--policy-name", "tagged", "--policy-document",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"eks:DescribeCluster","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/team":"erins"}}}]}`)
	describes := o.eksGetsAs(erin, clusterPath("muster"))
	may := func() error { return describes(new(json.RawMessage)) }
	if may() == nil {
		o.t.Error("erin sees a cluster that is not tagged")
	}
	o.mustAWS(nil, "eks", "tag-resource", "--resource-arn", arn, "--tags", "team=erins,kept=x")
	o.eventually("erin sees the cluster", may)
	o.management("patch", "cluster", "muster", "--type", "merge", "-p", `{"spec":{"tags":{"by":"kubectl"}}}`)
	var list struct{ Tags map[string]string }
	if o.mustAWS(&list, "eks", "list-tags-for-resource", "--resource-arn", arn); fmt.Sprint(list.Tags) != "map[by:kubectl kept:x team:erins]" {
		o.t.Errorf("tags %v", list.Tags)
	}
	o.mustAWS(nil, "eks", "untag-resource", "--resource-arn", arn, "--tag-keys", "team", "by")
	o.eventually("erin sees it no more", func() error { return unless(may(), "AccessDeniedException") })
	if got := o.management("get", "cluster", "muster", "-o", "jsonpath={.spec.tags}"); got != `{"kept":"x"}` {
		o.t.Errorf("the object has the tags %s", got)
	}
}

// unless is nil if an error says something.
func unless(err error, says string) error {
	switch {
	case err == nil:
		return errors.New("it succeeds")
	case strings.Contains(err.Error(), says):
		return nil
	}
	return err
}

// whoami is who the cluster takes somebody for.
func (o *operations) whoami(k keys) (string, error) {
	return o.kubectlIn(k, "muster", o.kubeconfig, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
}

// can asks the cluster whether somebody may do something: yes or no.
func (o *operations) can(k keys, args ...string) func() (string, error) {
	return func() (string, error) {
		out, err := o.kubectlIn(k, "muster", o.kubeconfig, append([]string{"auth", "can-i"}, args...)...)
		if strings.TrimSpace(out) == "no" { // and the exit status is 1
			return "no", nil
		}
		return out, err
	}
}

// becomes waits until something answers with a text.
func (o *operations) becomes(what, want string, ask func() (string, error)) {
	o.t.Helper()
	o.eventually(what, func() error {
		got, err := ask()
		if err == nil && got != want {
			err = fmt.Errorf("got %s, want %s", got, want)
		}
		return err
	})
}

// shownEntry is what is looked at of an access entry.
type shownEntry struct {
	AccessEntryARN, Username string
	KubernetesGroups         []string
	Tags                     map[string]string
}

// entries has an access entry decide who a user is in the cluster.
func (o *operations) entries() {
	const arn = "arn:aws:iam::" + iamAccount + ":user/dora"
	dora := o.user("dora")
	of := []string{"--cluster-name", "muster", "--principal-arn", arn}
	eks := func(into any, action string, args ...string) {
		o.t.Helper()
		o.mustAWS(into, append(append([]string{"eks", action}, of...), args...)...)
	}
	if who, err := o.whoami(dora); err == nil {
		o.t.Errorf("dora is %s without an entry", who)
	}
	eks(nil, "create-access-entry", "--kubernetes-groups", "readers", "--tags", "team=a")
	o.becomes("dora is of readers", arn+` ["readers","system:authenticated"]`, func() (string, error) { return o.whoami(dora) })
	eks(nil, "update-access-entry", "--kubernetes-groups", "writers", "--username", "dora-the-writer")
	o.becomes("dora is of writers", `dora-the-writer ["writers","system:authenticated"]`, func() (string, error) { return o.whoami(dora) })

	var shown struct{ AccessEntry shownEntry }
	eks(&shown, "describe-access-entry")
	if who, err := o.whoami(dora); err != nil || who != shown.AccessEntry.Username+` ["`+strings.Join(shown.AccessEntry.KubernetesGroups, `","`)+`","system:authenticated"]` {
		o.t.Errorf("the entry is %+v, and the cluster says %s, %v", shown.AccessEntry, who, err)
	}
	o.mustAWS(nil, "eks", "tag-resource", "--resource-arn", shown.AccessEntry.AccessEntryARN, "--tags", "team=b")
	if eks(&shown, "describe-access-entry"); shown.AccessEntry.Tags["team"] != "b" {
		o.t.Errorf("tags %v", shown.AccessEntry.Tags)
	}
	var list struct{ AccessEntries []string }
	o.mustAWS(&list, "eks", "list-access-entries", "--cluster-name", "muster")
	if there := o.mustKubectl("get", "accessentries", "-o", "jsonpath={.items[*].spec.principalARN}"); sorted(strings.Join(list.AccessEntries, " ")) != sorted(there) {
		o.t.Errorf("listed %v, and the cluster has %s", list.AccessEntries, there)
	}
	eks(nil, "delete-access-entry")
	o.eventually("dora is let in no more", func() error {
		who, err := o.whoami(dora)
		if err == nil {
			return fmt.Errorf("she is %s", who)
		}
		return nil
	})
}

// policies has access policies decide what a user may do in the cluster.
func (o *operations) policies() {
	frank := o.user("frank")
	of := []string{"--cluster-name", "muster", "--principal-arn", "arn:aws:iam::" + iamAccount + ":user/frank"}
	eks := func(into any, action string, args ...string) {
		o.t.Helper()
		o.mustAWS(into, append(append([]string{"eks", action}, of...), args...)...)
	}
	eks(nil, "create-access-entry")
	const edit = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSEditPolicy"
	here, elsewhere := o.can(frank, "create", "pods", "-n", "default"), o.can(frank, "create", "pods", "-n", "kube-system")
	o.becomes("frank may nothing", "no", here)
	eks(nil, "associate-access-policy", "--policy-arn", edit, "--access-scope", "type=namespace,namespaces=default")
	o.becomes("frank may edit", "yes", here)
	if got, err := elsewhere(); got != "no" {
		o.t.Errorf("in another namespace: %s, %v", got, err)
	}
	var associated struct {
		AssociatedAccessPolicies []struct {
			PolicyARN   string
			AccessScope struct{ Namespaces []string }
		}
	}
	eks(&associated, "list-associated-access-policies")
	if all := associated.AssociatedAccessPolicies; len(all) != 1 || all[0].PolicyARN != edit || strings.Join(all[0].AccessScope.Namespaces, " ") != "default" {
		o.t.Errorf("%+v", all)
	}
	eks(nil, "disassociate-access-policy", "--policy-arn", edit)
	o.becomes("frank may nothing any more", "no", here)

	// Every policy that there is gives rights by a cluster role that is there.
	var there struct {
		AccessPolicies []struct{ Name, ARN string }
	}
	o.mustAWS(&there, "eks", "list-access-policies")
	for _, p := range there.AccessPolicies {
		eks(nil, "associate-access-policy", "--policy-arn", p.ARN, "--access-scope", "type=cluster")
	}
	o.becomes("frank may all that administrators may", "yes", o.can(frank, "*", "*"))
	name := o.mustKubectl("get", "accessentries", "-o", `jsonpath={.items[?(@.spec.principalARN=="arn:aws:iam::`+iamAccount+`:user/frank")].metadata.name}`)
	var roles []string
	o.eventually("each has its binding", func() error {
		bindings := o.mustKubectl("get", "clusterrolebindings", "-o", `jsonpath={range .items[?(@.metadata.ownerReferences[0].name=="`+name+`")]}{.roleRef.name} {end}`)
		if roles = strings.Fields(bindings); len(roles) != len(there.AccessPolicies) {
			return fmt.Errorf("%d policies, and bindings to %v", len(there.AccessPolicies), roles)
		}
		return nil
	})
	o.mustKubectl(append([]string{"get", "clusterrole"}, roles...)...)
	eks(nil, "delete-access-entry")
}
