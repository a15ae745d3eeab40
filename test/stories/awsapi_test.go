// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clusterByTheAWSCLI makes a cluster and a node group with the AWS CLI, looks at them, and deletes them.
func (o *operations) clusterByTheAWSCLI() {
	t, w := o.t, o.iam
	role := w.clusterRole()
	subnets := strings.Fields(w.mustKubectl("--context", "muster-management", "get", "subnets", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(subnets) < 2 {
		t.Fatalf("the default VPC has the subnets %v", subnets)
	}

	t.Run("what kubectl or muster made is there", func(t *testing.T) {
		w := w.step(t)
		if shown := w.describeCluster("muster"); shown.Status != "ACTIVE" || shown.Endpoint == "" || shown.ResourcesVpcConfig.VpcID == "" {
			t.Errorf("%+v", shown)
		}
	})
	create := func(name string) []string {
		return []string{
			"eks", "create-cluster", "--name", name, "--role-arn", role, "--resources-vpc-config", "subnetIds=" + strings.Join(subnets[:2], ","),
			"--access-config", "authenticationMode=API_AND_CONFIG_MAP", "--tags", "team=a", "--client-request-token", "one",
		}
	}
	t.Run("refused", func(t *testing.T) {
		w := w.step(t)
		alice := w.user("alice")
		guessed := alice
		guessed.SecretAccessKey = strings.Map(func(r rune) rune { // no character stays what it is
			if r == 'x' {
				return 'y'
			}
			return 'x'
		}, alice.SecretAccessKey)
		for _, c := range []struct {
			who  []string
			args []string
			says string
		}{
			{w.as(alice), []string{"eks", "describe-cluster", "--name", "muster"}, "(AccessDeniedException) when calling the DescribeCluster operation: User: " + aliceARN + " is not authorized to perform: eks:DescribeCluster on resource: arn:aws:eks:us-east-1:000000000000:cluster/muster"},
			{w.as(alice), create("Blue_1"), "AccessDeniedException"},
			{w.admin, []string{"eks", "describe-cluster", "--name", "none"}, "(ResourceNotFoundException) when calling the DescribeCluster operation: No cluster found for name: none."},
			{w.admin, []string{"eks", "create-cluster", "--name", "Blue_1", "--role-arn", role + "x", "--resources-vpc-config", "{}"}, "(InvalidParameterException)"},
			{w.admin, []string{"eks", "describe-fargate-profile", "--cluster-name", "muster", "--fargate-profile-name", "x"}, "(ResourceNotFoundException)"},
			{w.as(guessed), []string{"eks", "list-clusters"}, "(InvalidSignatureException)"},
		} {
			if out, err := w.aws(c.who, c.args...); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: %s, %v, want %s", c.args, out, err, c.says)
			}
		}
	})
	t.Run("a cluster", func(t *testing.T) {
		w := w.step(t)
		began := time.Now()
		w.mustAWS(nil, create("Blue_1")...)
		w.mustAWS(nil, create("Blue_1")...) // sent again with its token
		w.eksBecomes(clusterPath("Blue_1"), "ACTIVE")
		t.Logf("create-cluster to ACTIVE: %v", time.Since(began).Round(100*time.Millisecond))
		shown := w.describeCluster("Blue_1")
		if shown.Tags["team"] != "a" || shown.RoleArn != role || len(shown.ResourcesVpcConfig.SubnetIds) != 2 || !strings.HasPrefix(shown.Identity.OIDC.Issuer, "https://") || shown.CertificateAuthority.Data == "" {
			t.Errorf("%+v", shown)
		}
	})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	t.Run("a node group", func(t *testing.T) {
		w := w.step(t)
		began := time.Now()
		w.mustAWS(nil, "eks", "create-nodegroup", "--cluster-name", "Blue_1", "--nodegroup-name", "web", "--node-role", "arn:aws:iam::"+iamAccount+":role/muster-node",
			"--subnets", subnets[0], "--scaling-config", "minSize=0,maxSize=2,desiredSize=1", "--labels", "pool=web", "--instance-types", "t3.medium")
		w.eksBecomes(nodegroupPath("Blue_1", "web"), "ACTIVE")
		t.Logf("create-nodegroup to ACTIVE: %v", time.Since(began).Round(100*time.Millisecond))
		if _, err := w.aws(w.admin, "eks", "update-kubeconfig", "--name", "Blue_1", "--kubeconfig", kubeconfig); err != nil {
			t.Fatal(err)
		}
		out, err := w.run(w.admin, filepath.Join(w.bin, "kubectl"), "--kubeconfig", kubeconfig, "get", "nodes", "-l", "pool=web,node.kubernetes.io/instance-type=t3.medium", "-o", "name")
		if err != nil || strings.Count(out, "node/") != 1 {
			t.Errorf("nodes: %q, %v", out, err)
		}
	})
	t.Run("an access entry", func(t *testing.T) {
		w := w.step(t)
		bob := w.user("bob")
		const bobARN = "arn:aws:iam::" + iamAccount + ":user/bob"
		sees := func() error {
			_, err := w.kubectlIn(bob, "Blue_1", kubeconfig, "get", "pods")
			return err
		}
		if err := sees(); err == nil {
			t.Error("bob is let in before there is an entry")
		}
		w.mustAWS(nil, "eks", "create-access-entry", "--cluster-name", "Blue_1", "--principal-arn", bobARN)
		w.mustAWS(nil, "eks", "associate-access-policy", "--cluster-name", "Blue_1", "--principal-arn", bobARN,
			"--policy-arn", "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy", "--access-scope", "type=cluster")
		w.eventually("bob sees pods", sees)
		w.mustAWS(nil, "eks", "delete-access-entry", "--cluster-name", "Blue_1", "--principal-arn", bobARN)
		if _, err := w.aws(w.admin, "eks", "describe-access-entry", "--cluster-name", "Blue_1", "--principal-arn", bobARN); gone("", err) != nil {
			t.Error(err)
		}
	})
	t.Run("updates of the cluster", func(t *testing.T) { w.step(t).updatesOfCluster("Blue_1", kubeconfig) })
	t.Run("updates of the node group", func(t *testing.T) { w.step(t).updatesOfNodegroup("Blue_1", "web", kubeconfig) })
	t.Run("an update that waits", func(t *testing.T) { w.step(t).updateThatWaits("Blue_1") })
	t.Run("a new template version", func(t *testing.T) { w.step(t).newTemplateVersion("Blue_1", subnets[0], kubeconfig) })
	t.Run("deleted", func(t *testing.T) {
		w := w.step(t)
		if _, err := w.aws(w.admin, "eks", "delete-cluster", "--name", "Blue_1"); err == nil || !strings.Contains(err.Error(), "(ResourceInUseException) when calling the DeleteCluster operation: Cluster has nodegroups attached") {
			t.Errorf("a cluster with a node group: %v", err)
		}
		w.mustAWS(nil, "eks", "delete-nodegroup", "--cluster-name", "Blue_1", "--nodegroup-name", "web")
		w.eksGone(nodegroupPath("Blue_1", "web"))
		w.mustAWS(nil, "eks", "delete-cluster", "--name", "Blue_1")
		w.eksGone(clusterPath("Blue_1"))
		var list struct{ Clusters []string }
		if w.mustAWS(&list, "eks", "list-clusters"); fmt.Sprint(list.Clusters) != "[muster]" {
			t.Errorf("clusters %v", list.Clusters)
		}
	})
}

// clusterRole makes a role that EKS's API takes.
func (w *iam) clusterRole() string {
	w.t.Helper()
	var made struct{ Role struct{ Arn string } }
	w.mustAWS(&made, "iam", "create-role", "--role-name", "eks", "--assume-role-policy-document",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`)
	w.mustAWS(nil, "iam", "attach-role-policy", "--role-name", "eks", "--policy-arn", "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")
	return made.Role.Arn
}

// describedCluster is what the story looks at of a cluster.
type describedCluster struct {
	Status, Endpoint, RoleArn string
	ResourcesVpcConfig        struct {
		SubnetIds []string
		VpcID     string

		ClusterSecurityGroupID string
		EndpointPrivateAccess  bool
	}
	Logging struct {
		ClusterLogging []struct {
			Types   []string
			Enabled bool
		}
	}
	UpgradePolicy        struct{ SupportType string }
	CertificateAuthority struct{ Data string }
	Identity             struct{ OIDC struct{ Issuer string } }
	Tags                 map[string]string
}

func (w *iam) describeCluster(name string) describedCluster {
	w.t.Helper()
	var shown struct{ Cluster describedCluster }
	w.mustAWS(&shown, "eks", "describe-cluster", "--name", name)
	return shown.Cluster
}

func (w *iam) nodegroupStatus(cluster, name string) string {
	w.t.Helper()
	var shown struct{ Nodegroup struct{ Status string } }
	w.mustAWS(&shown, "eks", "describe-nodegroup", "--cluster-name", cluster, "--nodegroup-name", name)
	return shown.Nodegroup.Status
}

func is(got, want string) error {
	if got != want {
		return fmt.Errorf("it is %s", got)
	}
	return nil
}
