// SPDX-License-Identifier: Apache-2.0

package elasticfilesystem

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
)

// The types of resources, as ARNs have them.
const (
	fileSystems  = "file-system/"
	accessPoints = "access-point/"
)

// AWS has ids of 8 digits, too, which it gave out before 2020. No such id is here.
var (
	systemID = regexp.MustCompile(`^fs-[0-9a-f]{8,40}$`)
	pointID  = regexp.MustCompile(`^fsap-[0-9a-f]{8,40}$`)
	targetID = regexp.MustCompile(`^fsmt-[0-9a-f]{8,40}$`)
)

// newID makes an id of 17 random digits.
func newID(prefix string) string {
	var random [9]byte
	_, _ = rand.Read(random[:]) // it never fails
	return prefix + hex.EncodeToString(random[:])[:17]
}

func (a *api) arn(call *awsfront.Call, kind, id string) string {
	return "arn:aws:elasticfilesystem:" + a.Region + ":" + call.Caller.Account() + ":" + kind + id
}

// systemOf is the id of a file system, which a request names by id or ARN.
func (a *api) systemOf(call *awsfront.Call, text string) (string, error) {
	id := strings.TrimPrefix(text, a.arn(call, fileSystems, ""))
	if !systemID.MatchString(id) {
		return "", refusal(badRequest, "invalid file system id %.100q: must be fs- and hexadecimal digits, or the ARN of a file system of this account and region", text)
	}
	return id, nil
}

// pointOf is the id of an access point, which a request names by id or ARN.
func (a *api) pointOf(call *awsfront.Call, text string) (string, error) {
	id := strings.TrimPrefix(text, a.arn(call, accessPoints, ""))
	if !pointID.MatchString(id) {
		return "", refusal(badRequest, "invalid access point id %.100q: must be fsap- and hexadecimal digits, or the ARN of an access point of this account and region", text)
	}
	return id, nil
}

func (a *api) system(ctx context.Context, id string) (*v1alpha1.FileSystem, error) {
	object := &v1alpha1.FileSystem{}
	err := a.Management.Get(ctx, client.ObjectKey{Name: id}, object)
	if apierrors.IsNotFound(err) {
		return nil, refusal(fileSystemNotFound, "File system '%s' does not exist.", id)
	}
	return object, away(err)
}

// lives checks that a file system is there and is not being deleted.
func (a *api) lives(ctx context.Context, id string) error {
	object, err := a.system(ctx, id)
	if err == nil && !object.DeletionTimestamp.IsZero() {
		err = refusal(wrongState, "File system '%s' is being deleted.", id)
	}
	return err
}

func (a *api) point(ctx context.Context, id string) (*v1alpha1.AccessPoint, error) {
	object := &v1alpha1.AccessPoint{}
	err := a.Management.Get(ctx, client.ObjectKey{Name: id}, object)
	if apierrors.IsNotFound(err) {
		return nil, refusal(accessPointNotFound, "Access point '%s' does not exist.", id)
	}
	return object, away(err)
}

// aboutSystem is a file system for IAM, with its tags if it is there.
func (a *api) aboutSystem(ctx context.Context, call *awsfront.Call, text string, request map[string][]string) ([]awsfront.Target, error) {
	id, err := a.systemOf(call, text)
	if err != nil {
		return nil, err
	}
	conditions := maps.Clone(request)
	if object, err := a.system(ctx, id); err == nil {
		conditions = resourceTags(conditions, systemTags(object))
	}
	return []awsfront.Target{{Resource: a.arn(call, fileSystems, id), Conditions: conditions}}, nil
}

// aboutPoint is an access point for IAM, with its tags if it is there.
func (a *api) aboutPoint(ctx context.Context, call *awsfront.Call, text string, request map[string][]string) ([]awsfront.Target, error) {
	id, err := a.pointOf(call, text)
	if err != nil {
		return nil, err
	}
	conditions := maps.Clone(request)
	if object, err := a.point(ctx, id); err == nil {
		conditions = resourceTags(conditions, plain(object.Spec.Tags))
	}
	return []awsfront.Target{{Resource: a.arn(call, accessPoints, id), Conditions: conditions}}, nil
}

func resourceTags(conditions map[string][]string, tags map[string]string) map[string][]string {
	if conditions == nil {
		conditions = map[string][]string{}
	}
	for key, value := range tags {
		conditions["aws:ResourceTag/"+key] = []string{value}
	}
	return conditions
}

// requestTags are the condition keys of the tags that a request sets.
func requestTags(tags []awstag.Tag) map[string][]string {
	conditions := map[string][]string{}
	for _, tag := range tags {
		conditions["aws:RequestTag/"+tag.Key] = []string{tag.Value}
		conditions["aws:TagKeys"] = append(conditions["aws:TagKeys"], tag.Key)
	}
	return conditions
}

// tagsOnCreate is the right to tag that a request needs which makes something with tags: these are those of the resource, too.
func tagsOnCreate(call *awsfront.Call, resource string, tags []awstag.Tag) []awsfront.Target {
	if len(tags) == 0 {
		return nil
	}
	conditions := requestTags(tags)
	for _, tag := range tags {
		conditions["aws:ResourceTag/"+tag.Key] = []string{tag.Value}
	}
	conditions["elasticfilesystem:CreateAction"] = []string{call.Action}
	return []awsfront.Target{{Action: service + ":TagResource", Resource: resource, Conditions: conditions}}
}

func plain(tags v1alpha1.Tags) map[string]string {
	out := make(map[string]string, len(tags))
	for key, value := range tags {
		out[key] = string(value)
	}
	return out
}

func kept(tags map[string]string) v1alpha1.Tags {
	if len(tags) == 0 {
		return nil
	}
	out := make(v1alpha1.Tags, len(tags))
	for key, value := range tags {
		out[key] = v1alpha1.TagValue(value)
	}
	return out
}

// checkToken checks the token of a request that makes something.
func checkToken(name, token string) error {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
		return refusal(badRequest, "invalid %s: must have from 1 to %d visible ASCII characters", name, maxToken)
	}
	return nil
}
