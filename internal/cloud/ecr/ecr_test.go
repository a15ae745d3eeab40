// SPDX-License-Identifier: Apache-2.0

package ecr

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/image/registrystore"
)

const (
	host      = "000000000000.dkr.ecr.eu-west-1.amazonaws.com"
	prefix    = "arn:aws:ecr:eu-west-1:000000000000:repository/"
	imageType = "application/vnd.oci.image.manifest.v1+json"
	indexType = "application/vnd.oci.image.index.v1+json"
	nothing   = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

// world is a front with the actions over a store on disk.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	store   *registrystore.Store
	front   *awsfront.Front
	handler http.Handler
	login   error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, gate: &awsfronttest.Gate{}, store: registrystore.New(filepath.Join(t.TempDir(), "registry"))}
	w.front = awsfronttest.New(t, w.gate, nil)
	var err error
	if err := Register(w.front, Config{
		Account: awsresource.Account{Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1"}, Store: w.store,
		Login: func(awsfront.Caller) (string, time.Time, error) { return "secret", time.Unix(1800000000, 0), w.login },
	}); err != nil {
		t.Fatal(err)
	}
	if w.handler, err = w.front.Handler(service); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask sends a request, and compares what comes: a status, and parts of the body.
func (w *world) ask(action, body string, status int, has ...string) string {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "AmazonEC2ContainerRegistry_V20150921."+action)
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	text := answer.Body.String()
	if answer.Code != status {
		w.t.Errorf("%s %s: %d %s, want %d", action, body, answer.Code, text, status)
	}
	for _, part := range has {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s %s: %s, want %s", action, body, text, part)
		}
	}
	return text
}

// push puts an image into the store as the registry does, and returns its digest.
func (w *world) push(repository, tag, layer string) digest.Digest {
	w.t.Helper()
	var sums []digest.Digest
	for _, content := range []string{"{}", layer} {
		sum := digest.FromString(content)
		id, err := w.store.Begin(w.t.Context(), repository)
		if err == nil {
			_, err = w.store.Append(repository, id, 0, strings.NewReader(content))
		}
		if err == nil {
			err = w.store.Finish(w.t.Context(), repository, id, sum)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	return w.put(repository, tag, imageType, manifest(sums[0], sums[1], len(layer)))
}

func manifest(config, layer digest.Digest, size int) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":2},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":%q,"size":%d}]}`,
		imageType, config, layer, size)
}

func (w *world) put(repository, tag, mediaType, content string) digest.Digest {
	w.t.Helper()
	m, err := w.store.PutManifest(w.t.Context(), repository, tag, mediaType, []byte(content))
	if err != nil {
		w.t.Fatal(err)
	}
	return m.Digest
}

// of is a body that names a repository, with more members.
func of(repository string, more ...string) string {
	return `{"repositoryName":` + strconv.Quote(repository) + strings.Join(append([]string{""}, more...), ",") + `}`
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	fine := func(of, action string) bool {
		if of == service {
			return w.front.Answers(of, action)
		}
		a, _ := awsactions.NewList().Find(of, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(of, action)
	}
	for _, problem := range awsactions.Problems(fine) {
		t.Error(problem)
	}
}

func TestPasswords(t *testing.T) {
	w := newWorld(t)
	w.ask("GetAuthorizationToken", `{}`, 200, `"authorizationToken":"QVdTOnNlY3JldA=="`, `"proxyEndpoint":"https://`+host+`"`, `"expiresAt":1800000000`) // AWS:secret
	w.ask("GetAuthorizationToken", `{"registryIds":["000000000000"]}`, 200, `"authorizationData":[{`)
	w.ask("GetAuthorizationToken", `{"registryIds":["111111111111"]}`, 400, "InvalidParameterException", "registryId")
	w.login = errors.New("a test breaks it")
	if got := w.ask("GetAuthorizationToken", `{}`, 500); strings.Contains(got, "a test") {
		t.Errorf("the cause is told: %s", got)
	}
}

// What Terraform's aws_ecr_repository does in its life.
func TestLifeOfARepository(t *testing.T) {
	w := newWorld(t)
	const body = `"imageTagMutability":"IMMUTABLE","imageScanningConfiguration":{"scanOnPush":true},"encryptionConfiguration":{"encryptionType":"AES256"},"tags":[{"Key":"team","Value":"a"}]`
	made := w.ask("CreateRepository", of("team/app", body), 200, `"repositoryArn":"`+prefix+`team/app"`, `"registryId":"000000000000"`, `"repositoryName":"team/app"`,
		`"repositoryUri":"`+host+`/team/app"`, `"imageTagMutability":"IMMUTABLE"`, `"imageScanningConfiguration":{"scanOnPush":true}`, `"encryptionConfiguration":{"encryptionType":"AES256"}`)
	var shape struct {
		Repository struct{ CreatedAt float64 }
	}
	if err := json.Unmarshal([]byte(made), &shape); err != nil || shape.Repository.CreatedAt < 1 {
		t.Errorf("%s: %v", made, err)
	}
	w.ask("CreateRepository", of("team/app"), 400, `"__type":"RepositoryAlreadyExistsException"`, "The repository with name 'team/app' already exists in the registry with id '000000000000'")
	w.ask("DescribeRepositories", `{"repositoryNames":["team/app"]}`, 200, `"repositoryName":"team/app"`, `"imageTagMutability":"IMMUTABLE"`)
	w.ask("PutImageTagMutability", of("team/app", `"imageTagMutability":"MUTABLE"`), 200, `"imageTagMutability":"MUTABLE"`, `"registryId":"000000000000"`)
	w.ask("DescribeRepositories", `{}`, 200, `"imageTagMutability":"MUTABLE"`)

	arn := `{"resourceArn":"` + prefix + `team/app"`
	w.ask("TagResource", arn+`,"tags":[{"Key":"b","Value":"2"}]}`, 200)
	w.ask("TagResource", arn+`,"tags":[{"Key":"b","Value":"2"}]}`, 200)
	w.ask("ListTagsForResource", arn+`}`, 200, `"tags":[{"Key":"b","Value":"2"},{"Key":"team","Value":"a"}]`)
	w.ask("UntagResource", arn+`,"tagKeys":["team"]}`, 200)
	w.ask("UntagResource", arn+`,"tagKeys":["team"]}`, 200)
	w.ask("ListTagsForResource", arn+`}`, 200, `"tags":[{"Key":"b","Value":"2"}]`)

	w.push("team/app", "v1", "layer")
	w.ask("DeleteRepository", of("team/app"), 400, "RepositoryNotEmptyException", "cannot be deleted because it still contains images")
	w.ask("DeleteRepository", of("team/app", `"force":true`), 200, `"repositoryName":"team/app"`)
	w.ask("DeleteRepository", of("team/app", `"force":true`), 400, "RepositoryNotFoundException", "The repository with name 'team/app' does not exist in the registry with id '000000000000'")
	w.ask("DescribeRepositories", `{}`, 200, `"repositories":[]`)
}

func TestImages(t *testing.T) {
	w := newWorld(t)
	w.ask("CreateRepository", of("app"), 200)
	one, two := w.push("app", "v1", "layer one"), w.push("app", "v2", "layer two")
	w.put("app", "latest", imageType, manifest(digest.FromString("{}"), digest.FromString("layer two"), 9))
	id := func(sum digest.Digest, tag string) string {
		text := `{"imageDigest":"` + sum.String() + `"`
		if tag != "" {
			text += `,"imageTag":"` + tag + `"`
		}
		return text + `}`
	}
	got := w.ask("DescribeImages", of("app", `"imageIds":[{"imageTag":"latest"}]`), 200, `"imageDigest":"`+two.String()+`"`, `"imageTags":["latest","v2"]`,
		`"imageManifestMediaType":"`+imageType+`"`, `"artifactMediaType":"application/vnd.oci.image.config.v1+json"`, `"registryId":"000000000000"`, `"repositoryName":"app"`)
	if strings.Contains(got, one.String()) {
		t.Errorf("another image is described: %s", got)
	}
	w.ask("DescribeImages", of("app", `"imageIds":[{"imageTag":"v9"}]`), 400, "ImageNotFoundException")
	w.ask("BatchGetImage", of("app", `"imageIds":[{"imageTag":"v1"},{"imageTag":"v9"},{"imageDigest":"`+nothing+`"},`+id(one, "v2")+`,{},{"imageTag":".."},{"imageDigest":"x"}]`), 200,
		`"imageManifest":"{\"schemaVersion\":2`, `"imageId":`+id(one, "v1"), `"failureCode":"ImageNotFound"`, `"failureCode":"ImageTagDoesNotMatchDigest"`, `"failureCode":"MissingDigestAndTag"`,
		`"failureCode":"InvalidImageTag"`, `"failureCode":"InvalidImageDigest"`)
	w.ask("BatchGetImage", of("app", `"imageIds":[]`), 400, "InvalidParameterException")
	w.ask("BatchGetImage", of("gone", `"imageIds":[{"imageTag":"v1"}]`), 400, "RepositoryNotFoundException")

	// A tag that is pushed again under another image, and twice under the same.
	_, content, err := w.store.Manifest("app", "v1")
	if err != nil {
		t.Fatal(err)
	}
	text := `"imageManifest":` + strconv.Quote(string(content))
	w.ask("PutImage", of("app", text, `"imageTag":"stable"`), 200, `"imageId":`+id(one, "stable"))
	w.ask("PutImage", of("app", text, `"imageTag":"stable"`), 400, "ImageAlreadyExistsException")
	w.ask("PutImage", of("app", text, `"imageTag":"stable","imageDigest":"`+nothing+`"`), 400, "ImageDigestDoesNotMatchException")
	w.ask("PutImage", of("app", `"imageManifest":`+strconv.Quote(manifest(digest.FromString("{}"), nothing, 1)), `"imageTag":"x"`), 400, "LayersNotFoundException")
	w.ask("PutImage", of("app", `"imageManifest":"{","imageTag":"x"`), 400, "InvalidParameterException")
	w.ask("PutImageTagMutability", of("app", `"imageTagMutability":"IMMUTABLE"`), 200)
	_, other, _ := w.store.Manifest("app", "v2")
	w.ask("PutImage", of("app", `"imageManifest":`+strconv.Quote(string(other)), `"imageTag":"stable"`), 400, "ImageTagAlreadyExistsException")

	// Images go by tag or by digest, once, and not while an index has them.
	index := w.put("app", "all", indexType, fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":%q,"size":%d}]}`, imageType, one, len(content)))
	w.ask("BatchDeleteImage", of("app", `"imageIds":[`+id(one, "")+`]`), 200, `"failureCode":"ImageReferencedByManifestList"`, index.String(), `"imageIds":[]`)
	w.ask("BatchDeleteImage", of("app", `"imageIds":[`+id(index, "")+`]`), 200, `"imageIds":[`+id(index, "all")+`]`)
	w.ask("BatchDeleteImage", of("app", `"imageIds":[{"imageTag":"stable"}]`), 200, `"imageIds":[`+id(one, "stable")+`]`)
	w.ask("BatchDeleteImage", of("app", `"imageIds":[{"imageTag":"stable"}]`), 200, `"failureCode":"ImageNotFound"`)
	w.ask("BatchDeleteImage", of("app", `"imageIds":[`+id(two, "")+`]`), 200, `"imageIds":[`+id(two, "latest")+`,`+id(two, "v2")+`]`)
	w.ask("ListImages", of("app"), 200, `"imageIds":[`+id(one, "v1")+`]`)
}

// Pages have each repository and image once, whatever their size, and a token is good for its own list alone.
// The service does not hold any number of manifests for one answer.
func TestLargeBatch(t *testing.T) {
	w := newWorld(t)
	w.ask("CreateRepository", `{"repositoryName":"big"}`, 200)
	manifest := fmt.Sprintf(`{"schemaVersion":2,"manifests":[],"annotations":{"a":%q}}`, strings.Repeat("x", maxBatch/4))
	if _, err := w.store.PutManifest(t.Context(), "big", "v1", indexType, []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	ids := func(n int) string {
		return `{"repositoryName":"big","imageIds":[` + strings.TrimSuffix(strings.Repeat(`{"imageTag":"v1"},`, n), ",") + `]}`
	}
	w.ask("BatchGetImage", ids(3), 200)
	w.ask("BatchGetImage", ids(4), 400, "ask for fewer images")
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"aa", "bb", "cc", "dd", "ee"} {
		w.ask("CreateRepository", of(name), 200)
	}
	w.push("aa", "v1", "one")
	w.push("aa", "v2", "two")
	untagged := w.push("aa", digestOf("three"), "three")
	var names []string
	token := ""
	for range 5 {
		var page struct {
			Repositories []struct{ RepositoryName string }
			NextToken    string
		}
		body := `{"maxResults":2` + token + `}`
		if err := json.Unmarshal([]byte(w.ask("DescribeRepositories", body, 200)), &page); err != nil || len(page.Repositories) > 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, r := range page.Repositories {
			names = append(names, r.RepositoryName)
		}
		if page.NextToken == "" {
			break
		}
		token = `,"nextToken":` + strconv.Quote(page.NextToken)
	}
	if diff := cmp.Diff([]string{"aa", "bb", "cc", "dd", "ee"}, names); diff != "" {
		t.Error(diff)
	}
	w.ask("ListImages", of("aa", token[1:]), 400, "InvalidParameterException")
	w.ask("DescribeRepositories", `{"nextToken":"x"}`, 400, "InvalidParameterException")
	w.ask("DescribeRepositories", `{"maxResults":1001}`, 400, "InvalidParameterException")
	w.ask("DescribeRepositories", `{"maxResults":0}`, 400, "InvalidParameterException")

	var first struct {
		ImageIDs  []identifier `json:"imageIds"`
		NextToken string
	}
	if err := json.Unmarshal([]byte(w.ask("ListImages", of("aa", `"maxResults":1`), 200)), &first); err != nil || len(first.ImageIDs) != 1 || first.NextToken == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	next := `"nextToken":` + strconv.Quote(first.NextToken)
	w.ask("ListImages", of("aa", `"maxResults":1`, next), 200, `"imageIds":[{`)
	w.ask("ListImages", of("aa", next, `"filter":{"tagStatus":"TAGGED"}`), 400, "InvalidParameterException")
	w.ask("ListImages", of("aa", `"filter":{"tagStatus":"UNTAGGED"}`), 200, `"imageIds":[{"imageDigest":"`+untagged.String()+`"}]`)
	if got := w.ask("ListImages", of("aa", `"filter":{"tagStatus":"TAGGED"}`), 200, `"imageTag":"v1"`, `"imageTag":"v2"`); strings.Contains(got, untagged.String()) {
		t.Errorf("an image without a tag: %s", got)
	}
	w.ask("ListImages", of("aa", `"filter":{"tagStatus":"SOME"}`), 400, "InvalidParameterException")
}

// digestOf is the digest of the image that push makes of a layer.
func digestOf(layer string) string {
	return digest.FromString(manifest(digest.FromString("{}"), digest.FromString(layer), len(layer))).String()
}

func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.ask("CreateRepository", of("app"), 200)
	for _, c := range []struct{ action, body, has string }{
		{"CreateRepository", of("App"), "repositoryName"},
		{"CreateRepository", of("../app"), "repositoryName"},
		{"CreateRepository", of("a"), "repositoryName"},
		{"CreateRepository", `{}`, "repositoryName"},
		{"CreateRepository", of("other", `"registryId":"111111111111"`), "registryId"},
		{"CreateRepository", of("other", `"imageTagMutability":"SOMETIMES"`), "imageTagMutability"},
		{"CreateRepository", of("other", `"encryptionConfiguration":{"encryptionType":"KMS"}`), "encryptionConfiguration"},
		{"CreateRepository", of("other", `"encryptionConfiguration":{"encryptionType":"AES256","kmsKey":"k"}`), "encryptionConfiguration"},
		{"CreateRepository", of("other", `"tags":[{"Key":"aws:x","Value":"y"}]`), "aws:"},
		{"PutImageTagMutability", of("app", `"imageTagMutability":"SOMETIMES"`), "imageTagMutability"},
		{"DescribeImages", of("app", `"registryId":"111111111111"`), "registryId"},
		{"ListTagsForResource", `{"resourceArn":"arn:aws:ecr:eu-west-1:111111111111:repository/app"}`, "resourceArn"},
		{"ListTagsForResource", `{"resourceArn":"arn:aws:ecr:us-east-1:000000000000:repository/app"}`, "resourceArn"},
		{"ListTagsForResource", `{"resourceArn":"` + prefix + `gone"}`, "RepositoryNotFoundException"},
		{"TagResource", `{"resourceArn":"` + prefix + `gone","tags":[{"Key":"a","Value":"b"}]}`, "RepositoryNotFoundException"},
		{"PutLifecyclePolicy", of("app", `"lifecyclePolicyText":"{}"`), ""},
		{"GetLifecyclePolicy", of("app"), "LifecyclePolicyNotFoundException"},
		{"DeleteLifecyclePolicy", of("app"), "Lifecycle policy does not exist for the repository with name 'app' in the registry with id '000000000000'"},
		{"GetRepositoryPolicy", of("app"), "RepositoryPolicyNotFoundException"},
		{"DeleteRepositoryPolicy", of("app"), "Repository policy does not exist for the repository with name 'app' in the registry with id '000000000000'"},
		{"GetRepositoryPolicy", of("gone"), "RepositoryNotFoundException"},
		{"CreatePullThroughCacheRule", `{"ecrRepositoryPrefix":"x","upstreamRegistryUrl":"quay.io"}`, ""},
	} {
		w.ask(c.action, c.body, 400, c.has)
	}
	w.ask("DescribeRepositories", `{}`, 200, `"repositoryName":"app"`)
	if all, err := w.store.List(); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// IAM is asked about the repository, before anything is told or changed.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	w.ask("CreateRepository", of("app", `"tags":[{"Key":"team","Value":"a"}]`), 200)
	sum := w.push("app", "v1", "layer")
	w.gate.Asked, w.gate.Denies = nil, true
	const tags = " aws:resourcetag/team=a ecr:resourcetag/team=a"
	for _, c := range []struct{ action, body, want string }{
		{"GetAuthorizationToken", `{}`, "*"},
		{"CreateRepository", of("app", `"tags":[{"Key":"x","Value":"y"}]`), prefix + "app aws:requesttag/x=y aws:tagkeys=x"},
		{"DescribeRepositories", `{}`, prefix + "*"},
		{"DescribeRepositories", `{"repositoryNames":["app"]}`, prefix + "app" + tags},
		{"DeleteRepository", of("app", `"force":true`), prefix + "app" + tags},
		{"DeleteRepository", of("gone"), prefix + "gone"},
		{"PutImageTagMutability", of("app", `"imageTagMutability":"IMMUTABLE"`), prefix + "app" + tags},
		{"ListImages", of("app"), prefix + "app" + tags},
		{"DescribeImages", of("app"), prefix + "app" + tags},
		{"BatchGetImage", of("app", `"imageIds":[{"imageTag":"v1"}]`), prefix + "app" + tags},
		{"BatchDeleteImage", of("app", `"imageIds":[{"imageTag":"v1"}]`), prefix + "app" + tags},
		{"PutImage", of("app", `"imageManifest":"{}","imageTag":"x"`), prefix + "app" + tags},
		{"GetLifecyclePolicy", of("app"), prefix + "app" + tags},
		{"DeleteRepositoryPolicy", of("app"), prefix + "app" + tags},
		{"ListTagsForResource", `{"resourceArn":"` + prefix + `app"}`, prefix + "app" + tags},
		{"TagResource", `{"resourceArn":"` + prefix + `app","tags":[{"Key":"x","Value":"y"}]}`, prefix + "app aws:requesttag/x=y" + " aws:resourcetag/team=a aws:tagkeys=x ecr:resourcetag/team=a"},
		{"UntagResource", `{"resourceArn":"` + prefix + `app","tagKeys":["team"]}`, prefix + "app aws:resourcetag/team=a aws:tagkeys=team ecr:resourcetag/team=a"},
	} {
		w.gate.Asked = nil
		w.ask(c.action, c.body, 400, "AccessDeniedException")
		if diff := cmp.Diff([]string{"ecr:" + c.action + " " + c.want}, w.gate.Asked); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.action, c.body, diff)
		}
	}
	w.gate.Denies = false
	w.ask("DescribeRepositories", `{}`, 200, `"repositoryName":"app"`, `"imageTagMutability":"MUTABLE"`)
	w.ask("ListImages", of("app"), 200, sum.String())
}
