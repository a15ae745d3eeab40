// SPDX-License-Identifier: Apache-2.0

package elasticfilesystem

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
)

const (
	vpc      = "vpc-0123456789abcdef0"
	otherVPC = "vpc-0123456789abcdef1"
	prefix   = "arn:aws:elasticfilesystem:eu-west-1:000000000000:"
)

// world is a front with the actions over a management plane in memory.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	api     client.Client
	front   *awsfront.Front
	handler http.Handler
	now     time.Time
	used    func(string) (int64, error)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gate: &awsfronttest.Gate{}, now: time.Unix(1800000000, 0), used: func(string) (int64, error) { return 4096, nil }}
	objects := []client.Object{
		&v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultSecurityGroupID(vpc)}, Spec: v1alpha1.SecurityGroupSpec{VPCID: vpc}},
		&v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: "sg-0123456789abcdef0"}, Spec: v1alpha1.SecurityGroupSpec{VPCID: vpc}},
		&v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultSecurityGroupID(otherVPC)}, Spec: v1alpha1.SecurityGroupSpec{VPCID: otherVPC}},
		&v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultFileSystemID(awsfronttest.Account)}, Spec: v1alpha1.FileSystemSpec{Name: "default", CreationToken: "default"}},
	}
	for id, subnet := range map[string]v1alpha1.SubnetSpec{
		"subnet-0123456789abcdef0": {VPCID: vpc, AvailabilityZone: "eu-west-1a"}, "subnet-0123456789abcdef1": {VPCID: vpc, AvailabilityZone: "eu-west-1a"},
		"subnet-0123456789abcdef2": {VPCID: vpc, AvailabilityZone: "eu-west-1b"}, "subnet-0123456789abcdef3": {VPCID: otherVPC, AvailabilityZone: "eu-west-1c"},
	} {
		objects = append(objects, &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: subnet})
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.FileSystem{}).
		WithInterceptorFuncs(awsfronttest.Numbered(func(int) time.Time { return w.now })).Build()
	w.front = awsfronttest.New(t, w.gate, func() time.Time { return w.now })
	err := Register(w.front, Config{
		Account: awsresource.Account{Management: w.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1"},
		Used:    func(_ context.Context, id string) (int64, error) { return w.used(id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.handler, err = w.front.Handler("elasticfilesystem"); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask sends a request such as "POST /file-systems", and compares what comes: a status, and parts of the body. It
// returns the members of the answer.
func (w *world) ask(request, body string, status int, has ...string) map[string]any {
	w.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, httptest.NewRequestWithContext(w.t.Context(), method, "/2015-02-01"+path, strings.NewReader(body)))
	text := answer.Body.String()
	if answer.Code != status {
		w.t.Fatalf("%s %s: %d %s, want %d", request, body, answer.Code, text, status)
	}
	for _, part := range has {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s %s: %s, want %s", request, body, text, part)
		}
	}
	if status == 204 {
		if text != "" || answer.Header().Get("Content-Type") != "" {
			w.t.Errorf("%s %s: an answer without content has %q of type %q", request, body, text, answer.Header().Get("Content-Type"))
		}
		return nil
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	return members
}

func (w *world) make(request, body, id string) string {
	w.t.Helper()
	status := 200
	if request == "POST /file-systems" { // the one that AWS's model answers 201
		status = 201
	}
	made, _ := w.ask(request, body, status)[id].(string)
	return made
}

func (w *world) system(token string) string {
	w.t.Helper()
	return w.make("POST /file-systems", `{"CreationToken":"`+token+`"}`, "FileSystemId")
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	list := awsactions.NewList()
	for _, problem := range awsactions.Problems(func(s, action string) bool {
		if s == "elasticfilesystem" {
			return w.front.Answers(s, action)
		}
		a, _ := list.Find(s, action)
		return a.Mark != awsactions.Refused && !list.NotYet(s, action)
	}) {
		t.Error(problem)
	}
}

// What Terraform's aws_efs_file_system does in its life.
func TestLifeOfAFileSystem(t *testing.T) {
	w := newWorld(t)
	made := w.ask("POST /file-systems", `{"CreationToken":"one","Tags":[{"Key":"Name","Value":"data"},{"Key":"team","Value":"a"}]}`, 201,
		`"LifeCycleState":"creating"`, `"PerformanceMode":"generalPurpose"`, `"ThroughputMode":"bursting"`, `"Encrypted":false`, `"Name":"data"`, `"CreationTime":1800000000`)
	id, _ := made["FileSystemId"].(string)
	if made["FileSystemArn"] != prefix+"file-system/"+id || made["OwnerId"] != awsfronttest.Account {
		t.Errorf("%v", made)
	}
	object := &v1alpha1.FileSystem{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: id}, object); err != nil || object.Spec.Name != "data" || object.Spec.Tags["team"] != "a" || len(object.Spec.Tags) != 1 || object.Spec.CreationToken != "one" {
		t.Fatalf("%+v, %v", object.Spec, err)
	}
	w.ask("POST /file-systems", `{"CreationToken":"one"}`, 409, `"__type":"FileSystemAlreadyExists"`, `"ErrorCode":"FileSystemAlreadyExists"`, `"FileSystemId":"`+id+`"`)
	w.ask("POST /file-systems", `{"CreationToken":"default"}`, 409, "FileSystemAlreadyExists")

	for status, state := range map[metav1.ConditionStatus]string{metav1.ConditionTrue: "available", metav1.ConditionFalse: "error"} {
		object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: "R", LastTransitionTime: metav1.Now()}}
		if err := w.api.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		w.ask("GET /file-systems?FileSystemId="+id, "", 200, `"LifeCycleState":"`+state+`"`)
	}
	w.ask("GET /file-systems?FileSystemId="+prefix+"file-system/"+id, "", 200, id)
	w.ask("GET /file-systems?CreationToken=one", "", 200, id)
	if none := w.ask("GET /file-systems?CreationToken=two", "", 200); len(none["FileSystems"].([]any)) != 0 {
		t.Errorf("%v", none)
	}
	w.ask("GET /file-systems/"+id+"/lifecycle-configuration", "", 200, `"LifecyclePolicies":[]`)
	w.ask("GET /file-systems/"+id+"/backup-policy", "", 200, `"Status":"DISABLED"`)
	w.ask("GET /file-systems/"+id+"/policy", "", 404, "PolicyNotFound")
	w.ask("PUT /file-systems/"+id+"/lifecycle-configuration", `{"LifecyclePolicies":[{"TransitionToIA":"AFTER_7_DAYS"}]}`, 400, "BadRequest", "one storage class")

	w.ask("POST /resource-tags/"+id, `{"Tags":[{"Key":"Name","Value":"files"},{"Key":"x","Value":"y"}]}`, 200)
	w.ask("DELETE /resource-tags/"+id+"?tagKeys=team", "", 200)
	w.ask("GET /resource-tags/"+id, "", 200, `"Tags":[{"Key":"Name","Value":"files"},{"Key":"x","Value":"y"}]`)
	w.ask("POST /resource-tags/"+id, `{"Tags":[{"Key":"aws:x","Value":"y"}]}`, 400, "BadRequest")

	w.ask("DELETE /file-systems/"+id, "", 204)
	w.ask("DELETE /file-systems/"+id, "", 404, "FileSystemNotFound", `"ErrorCode":"FileSystemNotFound"`)
	for _, path := range []string{"?FileSystemId=" + id, "/" + id + "/lifecycle-configuration", "/" + id + "/policy"} {
		w.ask("GET /file-systems"+path, "", 404, "FileSystemNotFound")
	}
	w.ask("GET /resource-tags/"+id, "", 404, "FileSystemNotFound")
}

// What is asked for and would not be there is refused, and nothing is made.
func TestNoFileSystemIsMadeOf(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct{ body, has string }{
		"no token":       {`{}`, "CreationToken"},
		"a long token":   {`{"CreationToken":"` + strings.Repeat("x", 65) + `"}`, "CreationToken"},
		"encryption":     {`{"CreationToken":"a","Encrypted":true}`, "Encrypted"},
		"a key":          {`{"CreationToken":"a","KmsKeyId":"k"}`, "KmsKeyId"},
		"backups":        {`{"CreationToken":"a","Backup":true}`, "Backup"},
		"one zone":       {`{"CreationToken":"a","AvailabilityZoneName":"eu-west-1a"}`, "AvailabilityZoneName"},
		"max IO":         {`{"CreationToken":"a","PerformanceMode":"maxIO"}`, "PerformanceMode"},
		"a throughput":   {`{"CreationToken":"a","ThroughputMode":"provisioned"}`, "ThroughputMode"},
		"a bad tag":      {`{"CreationToken":"a","Tags":[{"Key":"aws:a","Value":"b"}]}`, "aws:a"},
		"a name twice":   {`{"CreationToken":"a","Tags":[{"Key":"a","Value":"b"},{"Key":"a","Value":"c"}]}`, "Duplicate"},
		"something else": {`{"CreationToken":7}`, "CreationToken"},
	} {
		t.Run(name, func(t *testing.T) { (&world{t: t, handler: w.handler}).ask("POST /file-systems", c.body, 400, c.has) })
	}
	all := &v1alpha1.FileSystemList{}
	if err := w.api.List(t.Context(), all); err != nil || len(all.Items) != 1 {
		t.Errorf("%d file systems, %v", len(all.Items), err)
	}
	w.ask("GET /file-systems?FileSystemId=nonsense", "", 400, "BadRequest", "nonsense")
	w.ask("GET /file-systems?FileSystemId=arn:aws:elasticfilesystem:eu-west-1:111111111111:file-system/fs-0123456789abcdef0", "", 400, "BadRequest")
}

// What the EFS CSI driver does for a volume, and Terraform's aws_efs_access_point.
func TestLifeOfAnAccessPoint(t *testing.T) {
	w := newWorld(t)
	id := w.system("one")
	body := `{"ClientToken":"pvc-1","FileSystemId":"` + id + `","PosixUser":{"Uid":1000,"Gid":1001,"SecondaryGids":[7]},` +
		`"RootDirectory":{"Path":"/a/b","CreationInfo":{"OwnerUid":4294967295,"OwnerGid":1001,"Permissions":"0700"}},"Tags":[{"Key":"efs.csi.aws.com/cluster","Value":"true"}]}`
	w.gate.Asked = nil
	point := w.make("POST /access-points", body, "AccessPointId")
	slices.Sort(w.gate.Asked)
	want := []string{
		"elasticfilesystem:CreateAccessPoint " + prefix + "file-system/" + id + " aws:requesttag/efs.csi.aws.com/cluster=true aws:tagkeys=efs.csi.aws.com/cluster",
		"elasticfilesystem:TagResource " + prefix + "access-point/* aws:requesttag/efs.csi.aws.com/cluster=true aws:resourcetag/efs.csi.aws.com/cluster=true aws:tagkeys=efs.csi.aws.com/cluster elasticfilesystem:createaction=CreateAccessPoint",
	}
	if !slices.Equal(w.gate.Asked, want) {
		t.Errorf("IAM is asked\n%s", strings.Join(w.gate.Asked, "\n"))
	}
	w.ask("POST /access-points", body, 409, "AccessPointAlreadyExists", `"AccessPointId":"`+point+`"`)
	object := &v1alpha1.AccessPoint{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: point}, object); err != nil || object.Spec.Path != "/a/b" || object.Spec.ClusterName != "" ||
		*object.Spec.Owner != (v1alpha1.DirectoryOwner{UID: 4294967295, GID: 1001, Permissions: "0700"}) || object.Spec.PosixUser.SecondaryGIDs[0] != 7 {
		t.Errorf("%+v, %v", object.Spec, err)
	}
	shown := []string{
		`"ClientToken":"pvc-1"`, `"AccessPointArn":"` + prefix + "access-point/" + point + `"`, `"LifeCycleState":"available"`, `"PosixUser":{"Uid":1000,"Gid":1001,"SecondaryGids":[7]}`,
		`"RootDirectory":{"Path":"/a/b","CreationInfo":{"OwnerUid":4294967295,"OwnerGid":1001,"Permissions":"0700"}}`,
	}
	w.ask("GET /access-points?AccessPointId="+point, "", 200, shown...)
	w.ask("GET /access-points?FileSystemId="+id, "", 200, shown...)
	w.ask("GET /access-points?FileSystemId="+id+"&AccessPointId="+point, "", 400, "BadRequest")
	w.ask("GET /access-points?FileSystemId=fs-0123456789abcdef0", "", 404, "FileSystemNotFound")
	w.ask("GET /mount-targets?AccessPointId="+point, "", 200, `"MountTargets":[]`)
	w.ask("POST /resource-tags/"+point, `{"Tags":[{"Key":"Name","Value":"web"}]}`, 200)
	w.ask("GET /access-points?AccessPointId="+prefix+"access-point/"+point, "", 200, `"Name":"web"`)
	w.ask("DELETE /file-systems/"+id, "", 409, "FileSystemInUse", point)

	w.gate.Asked = nil
	w.ask("DELETE /access-points/"+point, "", 204)
	if want := "elasticfilesystem:DeleteAccessPoint " + prefix + "access-point/" + point + " aws:resourcetag/efs.csi.aws.com/cluster=true aws:resourcetag/name=web"; !slices.Equal(w.gate.Asked, []string{want}) {
		t.Errorf("IAM is asked %q", w.gate.Asked)
	}
	w.ask("DELETE /access-points/"+point, "", 404, "AccessPointNotFound")
	w.ask("GET /access-points?AccessPointId="+point, "", 404, "AccessPointNotFound")
	snapshot := &v1alpha1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "fssnap-0123456789abcdef0"}, Spec: v1alpha1.VolumeSnapshotSpec{FileSystemID: id, ClusterName: "blue"}}
	if err := w.api.Create(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	w.ask("DELETE /file-systems/"+id, "", 409, "FileSystemInUse", snapshot.Name+" of cluster blue")
	if err := w.api.Delete(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	w.ask("DELETE /file-systems/"+id, "", 204)

	root := w.make("POST /access-points", `{"ClientToken":"x","FileSystemId":"`+w.system("two")+`"}`, "AccessPointId")
	w.ask("GET /access-points?AccessPointId="+root, "", 200, `"RootDirectory":{"Path":"/"}`)
}

func TestNoAccessPointIsMadeOf(t *testing.T) {
	w := newWorld(t)
	id := w.system("one")
	with := func(members string) string { return `{"ClientToken":"a","FileSystemId":"` + id + `",` + members + `}` }
	root := func(path string) string { return with(`"RootDirectory":{"Path":"` + path + `"}`) }
	for name, c := range map[string]struct {
		body   string
		status int
		has    string
	}{
		"no token":                  {`{"FileSystemId":"` + id + `"}`, 400, "ClientToken"},
		"no file system":            {`{"ClientToken":"a"}`, 400, "FileSystemId"},
		"one that is not there":     {`{"ClientToken":"a","FileSystemId":"fs-0123456789abcdef0"}`, 404, "FileSystemNotFound"},
		"the default one":           {`{"ClientToken":"a","FileSystemId":"` + v1alpha1.DefaultFileSystemID(awsfronttest.Account) + `"}`, 400, "make a file system of your own"},
		"a path from above":         {root("/../x"), 400, "Path"},
		"a path without a root":     {root("x"), 400, "Path"},
		"a path of five names":      {root("/a/b/c/d/e"), 400, "Path"},
		"a path with a star":        {root("/a*"), 400, "Path"},
		"a path that ends in /":     {root("/a/"), 400, "Path"},
		"a long path":               {root("/" + strings.Repeat("x", 100)), 400, "Path"},
		"a negative user":           {with(`"PosixUser":{"Uid":-1,"Gid":0}`), 400, "PosixUser"},
		"a large group":             {with(`"PosixUser":{"Uid":1,"Gid":4294967296}`), 400, "PosixUser"},
		"a user without a group":    {with(`"PosixUser":{"Uid":1}`), 400, "Gid"},
		"seventeen groups":          {with(`"PosixUser":{"Uid":1,"Gid":1,"SecondaryGids":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}`), 400, "SecondaryGids"},
		"permissions":               {with(`"RootDirectory":{"Path":"/a","CreationInfo":{"OwnerUid":1,"OwnerGid":1,"Permissions":"0888"}}`), 400, "Permissions"},
		"an owner":                  {with(`"RootDirectory":{"Path":"/a","CreationInfo":{"OwnerUid":-1,"OwnerGid":1,"Permissions":"755"}}`), 400, "CreationInfo"},
		"an owner without a number": {with(`"RootDirectory":{"Path":"/a","CreationInfo":{"OwnerUid":1,"Permissions":"755"}}`), 400, "OwnerGid"},
		"tags of AWS":               {with(`"Tags":[{"Key":"aws:a","Value":"b"}]`), 400, "aws:a"},
	} {
		t.Run(name, func(t *testing.T) {
			(&world{t: t, handler: w.handler}).ask("POST /access-points", c.body, c.status, c.has)
		})
	}
	leaving := &v1alpha1.FileSystem{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: id}, leaving); err != nil {
		t.Fatal(err)
	}
	leaving.Finalizers = []string{v1alpha1.FinalizerFileSystem}
	if err := errors.Join(w.api.Update(t.Context(), leaving), w.api.Delete(t.Context(), leaving)); err != nil {
		t.Fatal(err)
	}
	w.ask("GET /file-systems?FileSystemId="+id, "", 200, `"LifeCycleState":"deleting"`)
	w.ask("POST /access-points", root("/a"), 409, "IncorrectFileSystemLifeCycleState")
	all := &v1alpha1.AccessPointList{}
	if err := w.api.List(t.Context(), all); err != nil || len(all.Items) != 0 {
		t.Errorf("%d access points, %v", len(all.Items), err)
	}
}

// What Terraform's aws_efs_mount_target does.
func TestLifeOfAMountTarget(t *testing.T) {
	w := newWorld(t)
	id, other := w.system("one"), w.system("two")
	body := func(system, subnet, more string) string {
		return `{"FileSystemId":"` + system + `","SubnetId":"subnet-0123456789abcdef` + subnet + `"` + more + `}`
	}
	target := w.make("POST /mount-targets", body(id, "0", ""), "MountTargetId")
	w.ask("GET /mount-targets?MountTargetId="+target, "", 200, `"LifeCycleState":"available"`, `"AvailabilityZoneName":"eu-west-1a"`, `"AvailabilityZoneId":"euw1-az`, `"VpcId":"`+vpc+`"`)
	w.ask("GET /file-systems?FileSystemId="+id, "", 200, `"NumberOfMountTargets":1`)
	w.ask("GET /file-systems?FileSystemId="+other, "", 200, `"NumberOfMountTargets":0`)
	w.ask("GET /mount-targets?FileSystemId="+other, "", 200, `"MountTargets":[]`)
	for name, c := range map[string]struct {
		body   string
		status int
		has    string
	}{
		"the zone again":              {body(id, "1", ""), 409, "MountTargetConflict"},
		"another VPC":                 {body(id, "3", ""), 409, "MountTargetConflict"},
		"no such subnet":              {body(id, "9", ""), 400, "SubnetNotFound"},
		"no such file system":         {body("fs-0123456789abcdef0", "2", ""), 404, "FileSystemNotFound"},
		"no such group":               {body(id, "2", `,"SecurityGroups":["sg-1"]`), 400, "SecurityGroupNotFound"},
		"a group of another VPC":      {body(id, "2", `,"SecurityGroups":["`+v1alpha1.DefaultSecurityGroupID(otherVPC)+`"]`), 400, "SecurityGroupNotFound"},
		"six groups":                  {body(id, "2", `,"SecurityGroups":["a","b","c","d","e","f"]`), 400, "SecurityGroupLimitExceeded"},
		"an address, which none has":  {body(id, "2", `,"IpAddress":"10.0.0.9"`), 400, "IpAddress"},
		"a subnet that nobody named.": {`{"FileSystemId":"` + id + `"}`, 400, "SubnetId"},
	} {
		t.Run(name, func(t *testing.T) {
			(&world{t: t, handler: w.handler}).ask("POST /mount-targets", c.body, c.status, c.has)
		})
	}
	w.make("POST /mount-targets", body(id, "2", ""), "MountTargetId")
	w.make("POST /mount-targets", body(other, "3", ""), "MountTargetId")
	w.ask("GET /mount-targets/"+target+"/security-groups", "", 200, `"SecurityGroups":["`+v1alpha1.DefaultSecurityGroupID(vpc)+`"]`)
	w.ask("PUT /mount-targets/"+target+"/security-groups", `{"SecurityGroups":["sg-0123456789abcdef0"]}`, 204)
	w.ask("GET /mount-targets/"+target+"/security-groups", "", 200, `["sg-0123456789abcdef0"]`)
	w.ask("PUT /mount-targets/"+target+"/security-groups", `{"SecurityGroups":["sg-2"]}`, 400, "SecurityGroupNotFound")
	w.ask("GET /mount-targets", "", 400, "BadRequest")
	w.ask("GET /mount-targets?FileSystemId="+id+"&MountTargetId="+target, "", 400, "BadRequest")
	w.ask("GET /mount-targets?MountTargetId=fsmt-0123456789abcdef0", "", 404, "MountTargetNotFound")
	w.ask("GET /mount-targets?MountTargetId=x", "", 400, "BadRequest")
	w.ask("DELETE /file-systems/"+id, "", 409, "FileSystemInUse")
	w.ask("DELETE /mount-targets/"+target, "", 204)
	w.ask("DELETE /mount-targets/"+target, "", 404, "MountTargetNotFound")
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	want := map[string]bool{v1alpha1.DefaultFileSystemID(awsfronttest.Account): true}
	for _, token := range []string{"a", "b", "c", "d"} {
		want[w.system(token)] = true
	}
	marker := ""
	for range 3 {
		page := w.ask("GET /file-systems?MaxItems=2&Marker="+marker, "", 200)
		for _, one := range page["FileSystems"].([]any) {
			delete(want, one.(map[string]any)["FileSystemId"].(string))
		}
		marker, _ = page["NextMarker"].(string)
	}
	if len(want) != 0 || marker != "" {
		t.Errorf("%v were not told, and there is more: %q", want, marker)
	}
	w.ask("GET /file-systems?MaxItems=0", "", 400, "BadRequest", "parameter MaxItems")
	w.ask("GET /access-points?MaxResults=0", "", 400, "BadRequest", "parameter MaxResults")
	w.ask("GET /file-systems?Marker=forged", "", 400, "BadRequest")
}

func TestSizes(t *testing.T) {
	w := newWorld(t)
	counts := 0
	w.used = func(string) (int64, error) { counts++; return 4096, nil }
	id := w.system("one")
	for range 3 {
		w.ask("GET /file-systems?FileSystemId="+id, "", 200, `"SizeInBytes":{"Value":4096,"Timestamp":1800000000}`)
	}
	if counts != 1 {
		t.Errorf("counted %d times", counts)
	}
	w.now = w.now.Add(10*time.Minute + time.Second)
	w.used = func(string) (int64, error) { return 0, context.DeadlineExceeded }
	w.ask("GET /file-systems?FileSystemId="+id, "", 200, `"SizeInBytes":{"Value":0}`)
}

// Each action is asked of IAM before it has an effect.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	id := w.system("one")
	point := w.make("POST /access-points", `{"ClientToken":"x","FileSystemId":"`+id+`"}`, "AccessPointId")
	target := w.make("POST /mount-targets", `{"FileSystemId":"`+id+`","SubnetId":"subnet-0123456789abcdef0"}`, "MountTargetId")
	w.gate.Denies = true
	for request, body := range map[string]string{
		"POST /file-systems": `{"CreationToken":"two"}`, "GET /file-systems": "", "DELETE /file-systems/" + id: "",
		"POST /access-points": `{"ClientToken":"y","FileSystemId":"` + id + `"}`, "GET /access-points": "", "DELETE /access-points/" + point: "",
		"POST /mount-targets": `{"FileSystemId":"` + id + `","SubnetId":"subnet-0123456789abcdef2"}`, "GET /mount-targets?FileSystemId=" + id: "", "DELETE /mount-targets/" + target: "",
		"GET /mount-targets/" + target + "/security-groups": "", "PUT /mount-targets/" + target + "/security-groups": `{"SecurityGroups":["sg-0123456789abcdef0"]}`,
		"DELETE /mount-targets/fsmt-0123456789abcdef0": "", "GET /resource-tags/" + id: "", "POST /resource-tags/" + point: `{"Tags":[{"Key":"a","Value":"b"}]}`,
		"DELETE /resource-tags/" + id + "?tagKeys=a": "", "GET /file-systems/" + id + "/policy": "", "GET /file-systems/" + id + "/lifecycle-configuration": "", "GET /file-systems/" + id + "/backup-policy": "",
	} {
		w.ask(request, body, 403, "AccessDeniedException")
	}
	w.gate.Denies = false
	w.ask("GET /mount-targets/"+target+"/security-groups", "", 200, v1alpha1.DefaultSecurityGroupID(vpc))
	w.ask("GET /resource-tags/"+point, "", 200, `"Tags":[]`)
	w.ask("GET /file-systems?CreationToken=two", "", 200, `"FileSystems":[]`)
}
