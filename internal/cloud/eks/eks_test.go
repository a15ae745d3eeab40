// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/cluster/insight/insightfacts"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/deprecation/deprecationlog"
	"muster.dev/muster/internal/platform/release"
)

const (
	account       = "000000000000"
	region        = "eu-west-1"
	clusterPolicy = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
	eksRole       = "arn:aws:iam::000000000000:role/eks"
	viewPolicy    = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
	kmsKey        = "arn:aws:kms:eu-west-1:000000000000:key/00000000-0000-0000-0000-000000000001"
	nodes         = "arn:aws:iam::000000000000:role/nodes"
)

type world struct {
	t          *testing.T
	gate       *awsfronttest.Gate
	api        client.Client
	cluster    client.Client
	deprecated deprecation.Seen
	callers    deprecationlog.Seen
	built      map[string]bool // minors besides the default
	back       string          // the minor that clusters can be taken back to
	refusal    string          // of another version
	against    []insight.Insight
	away       error
	front      *awsfront.Front
	handler    http.Handler
}

func newWorld(t *testing.T, change func(*Config), objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, accessv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects = append(objects, role("eks", "eks.amazonaws.com", clusterPolicy), role("nodes", "ec2.amazonaws.com"),
		subnet(1, "vpc-1", "a"), subnet(2, "vpc-1", "b"), subnet(3, "vpc-1", "b"), subnet(4, "vpc-2", "a"),
		securityGroup(groupHere, "vpc-1"), securityGroup(groupElsewhere, "vpc-2"))
	management := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Cluster{}, &v1alpha1.NodeGroup{}, &v1alpha1.FargateProfile{}).
		WithInterceptorFuncs(awsfronttest.Numbered(func(_ int) time.Time { return time.Unix(1800000000, 0) })).Build()
	w := &world{t: t, gate: &awsfronttest.Gate{}, api: management, built: map[string]bool{"1.35": true}}
	w.front = awsfronttest.New(t, w.gate, nil)
	var err error
	config := Config{Account: awsresource.Account{Management: management, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: region}, LocalMachines: true, AccessPolicies: []string{"AmazonEKSViewPolicy"}}
	w.cluster = fake.NewClientBuilder().WithScheme(scheme).Build()
	config.Cluster = func(namespace string) (client.Client, error) {
		if namespace != v1alpha1.ClusterSlug("Blue_1") {
			return nil, fmt.Errorf("asked for %q", namespace)
		}
		return w.cluster, nil
	}
	config.Insights = func(ctx context.Context, of *v1alpha1.Cluster) []insight.Insight {
		facts := insightfacts.Gather(ctx, insightfacts.Sources{
			Object: of, Management: management, Cluster: func() (client.Client, error) { return config.Cluster(of.Namespace) }, Back: w.back, Host: roomy(),
			Deprecated: func(context.Context) (deprecation.Seen, error) { return w.deprecated, nil },
			Callers:    func(context.Context) (deprecationlog.Seen, error) { return w.callers, nil },
		})
		return append(insight.Upgrade(facts), insight.Rollback(facts)...)
	}
	config.CheckVersion = func(_ context.Context, of *v1alpha1.Cluster, to release.Release) (string, []insight.Insight, error) {
		return config.Unbuilt(to) + w.refusal, w.against, w.away
	}
	config.Key = func(_ context.Context, of, arn string) error {
		if of != account || arn != kmsKey {
			return fmt.Errorf("there is no key %s", arn)
		}
		return nil
	}
	config.Unbuilt = func(of release.Release) string {
		return of.Unbuilt(func(path string) bool { minor, _, _ := strings.Cut(path, "/"); return w.built[minor] })
	}
	config.Compute = func(wanted v1alpha1.ClusterSpec, addons []v1alpha1.Addon) string {
		switch {
		case wanted.Compute.On() && w.built["karpenter"]:
			return ""
		case wanted.Compute.On():
			return "spec.compute: Karpenter is not built here"
		}
		return ""
	}
	config.KeyPair = func(_ context.Context, name string) (bool, error) { return name == "mine", nil }
	config.Public = func(_ context.Context, vpc, subnet string) (table, gateway string, err error) {
		if vpc == "vpc-1" && subnet == "subnet-2" {
			return "rtb-1", "igw-1", nil
		}
		return "", "", nil
	}
	config.AccessPolicy = func(arn string) error {
		if arn != viewPolicy {
			return fmt.Errorf("%s is not known", arn)
		}
		return nil
	}
	if change != nil {
		change(&config)
	}
	if err := Register(w.front, config); err != nil {
		t.Fatal(err)
	}
	if w.handler, err = w.front.Handler("eks"); err != nil {
		t.Fatal(err)
	}
	return w
}

// roomy is a host that keeps a cluster from nothing.
func roomy() insight.Host {
	much := insight.Fact[insight.Amount]{Is: insight.Amount{Is: 1 << 32, Of: 1 << 32}}
	return insight.Host{Memory: much, Disk: much, Etcd: insight.Fact[insight.Amount]{Is: insight.Amount{Of: 1 << 32}}}
}

func subnet(n int, vpc, zone string) *v1alpha1.Subnet {
	return &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("subnet-%d", n)}, Spec: v1alpha1.SubnetSpec{VPCID: vpc, AvailabilityZone: region + zone}}
}

// Security groups of the clusters' VPC and of another one.
const (
	groupHere      = "sg-0123456789abcdef0"
	groupElsewhere = "sg-0123456789abcdef1"
)

func securityGroup(id, vpc string) *v1alpha1.SecurityGroup {
	return &v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.SecurityGroupSpec{VPCID: vpc}}
}

func role(name, principal string, policies ...string) *v1alpha1.IAMRole {
	r := &v1alpha1.IAMRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Spec.Account, r.Spec.Name, r.Spec.ARN, r.Spec.AttachedPolicies = account, name, "arn:aws:iam::"+account+":role/"+name, policies
	r.Spec.TrustPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + principal + `"},"Action":"sts:AssumeRole"}]}`
	return r
}

// ask sends a request, and compares what comes: a status, and parts of the body.
func (w *world) ask(method, path, body string, status int, has ...string) string {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	text := answer.Body.String()
	if answer.Code != status {
		w.t.Errorf("%s %s: %d %s, want %d", method, path, answer.Code, text, status)
	}
	for _, part := range has {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s %s: %s, want %s", method, path, text, part)
		}
	}
	return text
}

const makeOne = `{"name":"Blue_1","roleArn":"` + eksRole + `","resourcesVpcConfig":{"subnetIds":["subnet-1","subnet-2"]},"clientRequestToken":"t1","tags":{"team":"a"},` +
	`"logging":{"clusterLogging":[{"types":["audit","api"],"enabled":true}]},"accessConfig":{"authenticationMode":"API"}}`

// served has a cluster as its controllers leave it.
func (w *world) served(name string) {
	w.t.Helper()
	slug := v1alpha1.ClusterSlug(name)
	c := &v1alpha1.Cluster{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: slug, Name: slug}, c); err != nil {
		w.t.Fatal(err)
	}
	c.Finalizers = []string{v1alpha1.FinalizerCluster}
	if err := w.api.Update(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	c.Status.VPCID, c.Status.SubnetIDs = "vpc-1", c.Spec.Network.SubnetIDs
	c.Status.Version, c.Status.Endpoint, c.Status.CertificateAuthority.Data, c.Status.Identity.OIDC.Issuer = "v1.36.3", "https://127.0.0.1:6443", "UEVN", "https://h/id/1"
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Healthy", LastTransitionTime: metav1.Now()}}
	if err := w.api.Status().Update(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	// What the list says of EKS is so.
	fine := func(service, action string) bool {
		if service == "eks" {
			return w.front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}
	for _, problem := range awsactions.Problems(fine) {
		t.Error(problem)
	}
}

func TestALifeOfACluster(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("GET", "/clusters", "", 200, `{"clusters":[]}`)
	w.ask("GET", "/clusters/Blue_1", "", 404, "No cluster found for name: Blue_1.", `"__type":"ResourceNotFoundException"`, `"clusterName":"Blue_1"`)
	made := w.ask("POST", "/clusters", makeOne, 200, `"status":"CREATING"`, `"arn":"arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1"`, `"createdAt":1800000000`,
		`{"types":["api","audit"],"enabled":true}`, `{"types":["authenticator","controllerManager","scheduler"],"enabled":false}`, `"tags":{"team":"a"}`)
	if again := w.ask("POST", "/clusters", makeOne, 200); again != made {
		t.Errorf("sent twice: %s\nwas %s", again, made)
	}
	w.ask("POST", "/clusters", strings.Replace(makeOne, `"API"`, `"CONFIG_MAP"`, 1), 400, "earlier request with other parameters")
	w.ask("POST", "/clusters", strings.Replace(makeOne, `"t1"`, `"t2"`, 1), 409, "Cluster already exists with name: Blue_1")
	w.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 400, "is not in ACTIVE status")
	w.served("Blue_1")
	shown := w.ask("GET", "/clusters/Blue_1", "", 200, `"status":"ACTIVE"`, `"version":"1.36"`, `"endpoint":"https://127.0.0.1:6443"`, `"vpcId":"vpc-1"`, `"subnetIds":["subnet-1","subnet-2"]`,
		`"certificateAuthority":{"data":"UEVN"}`, `"identity":{"oidc":{"issuer":"https://h/id/1"}}`, `"authenticationMode":"API"`, `"roleArn":"`+eksRole+`"`, `"deletionProtection":false`,
		`"platformVersion":"eks.1"`, `"serviceIpv4Cidr":"10.100.0.0/16"`, `"health":{"issues":[]}`, `"endpointPublicAccess":true`)
	if strings.Contains(shown, "encryptionConfig") || strings.Contains(shown, "clientRequestToken") {
		t.Errorf("it tells what nobody sent: %s", shown)
	}
	w.ask("GET", "/clusters?include=all&maxResults=1", "", 200, `{"clusters":["Blue_1"]}`)
	w.ask("DELETE", "/clusters/Blue_1", "", 200, `"status":"DELETING"`)
	w.ask("GET", "/clusters/Blue_1", "", 200, `"status":"DELETING"`) // its controllers end it
	w.ask("DELETE", "/clusters/none", "", 404, "No cluster found for name: none.")

	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range []string{
		"eks:CreateCluster arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:requesttag/team=a aws:tagkeys=team eks:authenticationmode=API eks:loggingtype/api=true eks:loggingtype/audit=true",
		"eks:DescribeCluster arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:resourcetag/team=a", "eks:ListClusters arn:aws:eks:eu-west-1:000000000000:cluster/*",
		"eks:DeleteCluster arn:aws:eks:eu-west-1:000000000000:cluster/none",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
}

func TestClustersThatAreRefused(t *testing.T) {
	w := newWorld(t, nil, role("bare", "eks.amazonaws.com"), role("stranger", "ec2.amazonaws.com", clusterPolicy))
	for name, c := range map[string]struct{ old, new, says string }{
		"no such role":          {eksRole, "arn:aws:iam::000000000000:role/none", "does not exist"},
		"a role without trust":  {"role/eks", "role/stranger", "Role could not be assumed because the trusted entity is not correct"},
		"a role without policy": {"role/eks", "role/bare", "The provided role doesn't have the Amazon EKS Managed Policies associated with it"},
		"a bad name":            {"Blue_1", "-blue", "The cluster name"},
		"a version":             {`"tags"`, `"version":"1.20","tags"`, "unsupported Kubernetes version"},
		"one zone":              {`"subnet-1"`, `"subnet-3"`, "Subnets specified must be in at least two different AZs"},
		"two VPCs":              {`"subnet-1"`, `"subnet-4"`, "Subnets provided must be from same VPC"},
		"no such subnet":        {`"subnet-1"`, `"subnet-9"`, "The subnet ID 'subnet-9' does not exist"},
		"no endpoint":           {`"resourcesVpcConfig":{`, `"resourcesVpcConfig":{"endpointPublicAccess":false,`, "Private and public endpoint access cannot be false"},
		"a range":               {`"tags"`, `"kubernetesNetworkConfig":{"serviceIpv4Cidr":"8.8.8.0/24"},"tags"`, "serviceIpv4Cidr"},
		"IPv6":                  {`"tags"`, `"kubernetesNetworkConfig":{"ipFamily":"ipv6"},"tags"`, "ipFamily"},
		"a log type":            {`"audit"`, `"everything"`, "everything"},
		"a mode":                {`"API"`, `"EVERYBODY"`, "EVERYBODY"},
		"a tag of AWS's":        {`"team"`, `"aws:team"`, "aws:"},
		"auto mode alone":       {`"tags"`, `"computeConfig":{"enabled":true},"tags"`, "are all either fully enabled or fully disabled"},
		"its storage alone":     {`"tags"`, `"storageConfig":{"blockStorage":{"enabled":true}},"tags"`, "are all either fully enabled or fully disabled"},
		"auto mode, not built":  {`"tags"`, autoOn + `,"bootstrapSelfManagedAddons":false,"tags"`, "Karpenter is not built here"},
		"its own add-ons":       {`"tags"`, autoOn + `,"tags"`, "When EKS Auto Mode is enabled, bootstrapSelfManagedAddons must be set to false."},
		"pools without a role":  {`"tags"`, strings.Replace(autoOn, `,"nodeRoleArn":"`+nodes+`"`, "", 1) + `,"tags"`, "nodeRoleArn must be provided"},
		"a role without pools":  {`"tags"`, strings.Replace(autoOn, `"general-purpose"`, "", 1) + `,"tags"`, "nodePool value(s) must be provided"},
		"another pool":          {`"tags"`, strings.Replace(autoOn, `"general-purpose"`, `"gpu"`, 1) + `,"tags"`, "are not valid"},
		"pools that are off":    {`"tags"`, `"computeConfig":{"enabled":false,"nodePools":["system"]},"tags"`, "must be left out"},
		"an old mode":           {`"tags":{"team":"a"},"logging":{"clusterLogging":[{"types":["audit","api"],"enabled":true}]},"accessConfig":{"authenticationMode":"API"}`, autoOn + `,"bootstrapSelfManagedAddons":false`, "authenticationMode must be set to API"},
		"what is not here":      {`"tags"`, `"outpostConfig":{"outpostArns":["a"],"controlPlaneInstanceType":"m5"},"tags"`, "does not support outpostConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			body := strings.Replace(makeOne, c.old, c.new, 1)
			if body == makeOne {
				t.Fatal("nothing is replaced")
			}
			w.ask("POST", "/clusters", body, 400, `"__type":"InvalidParameterException"`, c.says)
		})
	}
	var all v1alpha1.ClusterList
	if err := w.api.List(t.Context(), &all); err != nil || len(all.Items) != 0 {
		t.Errorf("there are %d clusters, %v", len(all.Items), err)
	}
}

const makeGroup = `{"nodegroupName":"Web_1","nodeRole":"` + nodes + `","subnets":["subnet-3"],"scalingConfig":{"minSize":1,"maxSize":3,"desiredSize":2},"labels":{"pool":"web"},` +
	`"taints":[{"key":"a","value":"b","effect":"NO_SCHEDULE"}],"instanceTypes":["m5.large"],"tags":{"team":"b"},"clientRequestToken":"g1"}`

func TestALifeOfANodeGroup(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 404, "No cluster found for name: Blue_1.")
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	made := w.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 200, `"status":"CREATING"`, `"scalingConfig":{"minSize":1,"maxSize":3,"desiredSize":2}`, `"labels":{"pool":"web"}`,
		`"taints":[{"key":"a","value":"b","effect":"NO_SCHEDULE"}]`, `"instanceTypes":["m5.large"]`, `"nodeRole":"`+nodes+`"`, `"subnets":["subnet-3"]`, `"clusterName":"Blue_1"`, `"tags":{"team":"b"}`)
	if again := w.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 200); again != made {
		t.Errorf("sent twice: %s\nwas %s", again, made)
	}
	w.ask("POST", "/clusters/Blue_1/node-groups", strings.Replace(makeGroup, "g1", "g2", 1), 409, "NodeGroup already exists with name Web_1 and cluster name Blue_1")
	w.ask("GET", "/clusters/Blue_1/node-groups", "", 200, `{"nodegroups":["Web_1"]}`)
	w.ask("GET", "/clusters/Blue_1/node-groups/none", "", 404, "No node group found for name: none.", `"nodegroupName":"none"`)
	w.ask("DELETE", "/clusters/Blue_1", "", 409, "Cluster has nodegroups attached")
	for name, c := range map[string]struct{ old, new, says string }{
		"a size":        {`"desiredSize":2`, `"desiredSize":4`, "Desired capacity 4 can't be greater than max size 3"},
		"an effect":     {"NO_SCHEDULE", "NoSchedule", "The effect"},
		"a role":        {nodes, eksRole, "Following required service principals [ec2.amazonaws.com]"},
		"spot":          {`"subnets"`, `"capacityType":"SPOT","subnets"`, "SPOT"},
		"a subnet":      {"subnet-3", "subnet-4", "must be of the cluster's VPC"},
		"a disk":        {`"subnets"`, `"diskSize":0,"subnets"`, "diskSize must be from 4 to 16384 GiB"},
		"two maxima":    {`"subnets"`, `"updateConfig":{"maxUnavailable":1,"maxUnavailablePercentage":33},"subnets"`, "not both"},
		"a maximum":     {`"subnets"`, `"updateConfig":{"maxUnavailable":0},"subnets"`, "maxUnavailable must be from 1 to 100"},
		"a percentage":  {`"subnets"`, `"updateConfig":{"maxUnavailablePercentage":101},"subnets"`, "maxUnavailablePercentage must be from 1 to 100"},
		"a strategy":    {`"subnets"`, `"updateConfig":{"maxUnavailable":1,"updateStrategy":"FAST"},"subnets"`, "updateStrategy must be DEFAULT or MINIMAL"},
		"a pool":        {`"subnets"`, `"warmPoolConfig":{"enabled":true,"minSize":4},"subnets"`, "a warm pool is not larger than its node group"},
		"mixed types":   {`"instanceTypes":["m5.large"]`, `"instanceTypes":["m5.large","m5.xlarge"],"warmPoolConfig":{"enabled":true}`, "with 2 instanceTypes has no warm pool"},
		"a repair":      {`"subnets"`, `"nodeRepairConfig":{"enabled":true,"maxParallelNodesRepairedCount":0},"subnets"`, "nodeRepairConfig.maxParallelNodesRepairedCount: Invalid value: 0"},
		"a release":     {`"subnets"`, `"releaseVersion":"1.22.12-20220824","subnets"`, "Requested release version"},
		"a label":       {`"pool"`, `"kubernetes.io/x"`, "spec.labels"},
		"EKS's label":   {`"pool"`, `"eks.amazonaws.com/capacityType"`, "Label cannot contain reserved prefixes [kubernetes.io/, k8s.io/, eks.amazonaws.com/]"},
		"a name":        {"Web_1", "we b", "The node group name"},
		"a remote user": {`"subnets"`, `"remoteAccess":{"ec2SshKey":"k"},"subnets"`, "KeyPair k not found"},
		"a login":       {`"subnets"`, `"remoteAccess":{"ec2SshKey":"mine","sourceSecurityGroups":["` + groupElsewhere + `"]},"subnets"`, "are not in the same VPC"},
		"no key":        {`"subnets"`, `"remoteAccess":{},"subnets"`, "give ec2SshKey"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			body := strings.Replace(strings.Replace(makeGroup, "Web_1", "other", 1), c.old, c.new, 1)
			if name == "a name" {
				body = strings.Replace(makeGroup, c.old, c.new, 1)
			}
			w.ask("POST", "/clusters/Blue_1/node-groups", body, 400, `"__type":"InvalidParameterException"`, c.says)
		})
	}
	w.t = t
	w.ask("DELETE", "/clusters/Blue_1/node-groups/Web_1", "", 200, `"status":"DELETING"`)
	w.ask("GET", "/clusters/Blue_1/node-groups/Web_1", "", 404)
	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range []string{
		"eks:CreateNodegroup arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1 aws:requesttag/team=b aws:resourcetag/team=a aws:tagkeys=team",
		"iam:PassRole arn:aws:iam::000000000000:role/nodes iam:passedtoservice=eks.amazonaws.com",
		"eks:DescribeNodegroup arn:aws:eks:eu-west-1:000000000000:nodegroup/Blue_1/none/*",
		"eks:DeleteNodegroup arn:aws:eks:eu-west-1:000000000000:nodegroup/Blue_1/Web_1/00000000-0000-0000-0000-000000000003 aws:resourcetag/team=b",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
	rootless := newWorld(t, func(c *Config) { c.LocalMachines = false })
	rootless.ask("POST", "/clusters", makeOne, 200)
	rootless.served("Blue_1")
	rootless.ask("POST", "/clusters/Blue_1/node-groups", makeGroup, 400, "InvalidRequestException", "without root")
}

func TestTags(t *testing.T) {
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.served("Blue_1")
	path := "/tags/" + url.PathEscape("arn:aws:eks:eu-west-1:000000000000:cluster/Blue_1")
	w.ask("GET", path, "", 200, `{"tags":{"team":"a"}}`)
	w.ask("POST", path, `{"tags":{"team":"c","cost":"1"}}`, 200, "{}")
	w.ask("GET", path, "", 200, `{"tags":{"cost":"1","team":"c"}}`)
	w.ask("DELETE", path+"?tagKeys=cost&tagKeys=none", "", 200, "{}")
	w.ask("GET", "/clusters/Blue_1", "", 200, `"tags":{"team":"c"}`)
	w.ask("POST", path, `{"tags":{"aws:x":"c"}}`, 400, "BadRequestException")
	w.ask("GET", strings.Replace(path, "Blue_1", "none", 1), "", 404, "NotFoundException")
	w.ask("GET", strings.Replace(path, "eu-west-1", "eu-west-2", 1), "", 404, "NotFoundException")
	w.ask("GET", "/tags/x", "", 400, "BadRequestException")
	w.gate.Denies = true
	w.ask("POST", path, `{"tags":{"team":"d"}}`, 403, "AccessDeniedException")
	w.ask("POST", "/clusters", strings.Replace(makeOne, "Blue_1", "other", 1), 403, "AccessDeniedException")
	w.ask("DELETE", "/clusters/Blue_1", "", 403)
	w.gate.Denies = false
	w.ask("GET", "/clusters/Blue_1", "", 200, `"tags":{"team":"c"}`, "ACTIVE")
	w.ask("GET", "/clusters/other", "", 404)
}

func TestPagesAndVersions(t *testing.T) {
	w := newWorld(t, nil)
	want := []string{}
	for i := range 5 {
		name := fmt.Sprintf("c%d", i)
		w.ask("POST", "/clusters", strings.Replace(strings.Replace(makeOne, "Blue_1", name, 1), "t1", name, 1), 200)
		want = append(want, name)
	}
	var got []string
	for next := ""; ; {
		var page struct {
			Clusters  []string
			NextToken string
		}
		if err := json.NewDecoder(bytes.NewBufferString(w.ask("GET", "/clusters?maxResults=2&nextToken="+next, "", 200))).Decode(&page); err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Clusters...)
		if next = page.NextToken; next == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages are of %v", got)
	}
	w.ask("GET", "/clusters?nextToken=x", "", 400, "InvalidParameterException")
	w.ask("GET", "/clusters?maxResults=101", "", 400, "InvalidParameterException")
	w.ask("GET", "/cluster-versions", "", 200, `"clusterVersion":"1.36"`, `"defaultVersion":true`, `"kubernetesPatchVersion":"1.36.4"`)
	w.ask("GET", "/cluster-versions?clusterVersions=1.20", "", 200, `{"clusterVersions":[]}`)
	if all := w.ask("GET", "/cluster-versions", "", 200); strings.Count(all, `"clusterVersion"`) != len(release.All()) {
		t.Error(all)
	}
	if all := w.ask("GET", "/cluster-versions?defaultOnly=true", "", 200, `"clusterVersion":"1.36"`); strings.Count(all, `"clusterVersion"`) != 1 {
		t.Error(all)
	}
	w.ask("GET", "/cluster-versions?clusterVersions=1.37", "", 200, `"releaseDate":`, `"endOfStandardSupportDate":`)
}
