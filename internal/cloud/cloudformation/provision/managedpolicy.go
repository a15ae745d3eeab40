// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/arn"
)

func managedPolicyHandlers() map[string]handler {
	return map[string]handler{
		"AWS::IAM::ManagedPolicy": {
			create: createManaged, complete: setHolders, read: readManaged, remove: removeManaged,
			update: func(ctx context.Context, j *job) (bool, error) { return both(ctx, j, renewDocument, setHolders) },
		},
		"AWS::IAM::OIDCProvider": {create: createIssuer, read: readIssuer, update: updateIssuer, remove: removeIssuer},
	}
}

// ofAccount is the ARN of an entity of IAM in the stack's account.
func (j *job) ofAccount(resource string) (string, error) {
	own, err := arn.Parse(j.StackID)
	if err != nil {
		return "", err
	}
	return arn.ARN{Partition: own.Partition, Service: iam, Account: own.Account, Resource: resource}.String(), nil
}

// own makes an entity, and takes one that is there already if it has the tag of the creation. The path leads to the ARN in the
// output, and the tags are at the path in what the action reads by the member.
func (j *job) own(ctx context.Context, path, resource, read, member, tags string) (string, error) {
	out, err := j.first(ctx)
	if !hasCode(err, "EntityAlreadyExists") {
		return text(out, path), err
	}
	name, unread := j.ofAccount(resource)
	if unread != nil {
		return "", unread
	}
	had, unread := j.ask(ctx, iam, read, map[string]any{member: name})
	if unread != nil {
		return "", unread
	}
	if tagsIn(had, tags)[mark] == j.token() {
		return name, nil
	}
	return "", err
}

func createManaged(ctx context.Context, j *job) (map[string]any, error) {
	if len(texts(j.is, "Groups")) > 0 {
		return nil, errNoGroups
	}
	path := j.property("Path")
	if path == "" {
		path = "/"
	}
	name, err := j.own(ctx, "Policy.Arn", "policy"+path+j.property("ManagedPolicyName"), "GetPolicy", "PolicyArn", "Policy.Tags")
	return map[string]any{"PolicyArn": name}, err
}

// setHolders attaches a managed policy to the roles and users that are asked for, and detaches it from those that are not any more.
func setHolders(ctx context.Context, j *job) error {
	for _, h := range []struct{ property, member, kind string }{{"Roles", "RoleName", "Role"}, {"Users", "UserName", "User"}} {
		for _, name := range texts(j.is, h.property) {
			if _, err := j.ask(ctx, iam, "Attach"+h.kind+"Policy", map[string]any{h.member: name, "PolicyArn": j.attribute("PolicyArn")}); err != nil {
				return err
			}
		}
		for _, name := range texts(j.was, h.property) {
			if slices.Contains(texts(j.is, h.property), name) {
				continue
			}
			if _, err := j.ask(ctx, iam, "Detach"+h.kind+"Policy", map[string]any{h.member: name, "PolicyArn": j.attribute("PolicyArn")}); err != nil && !isGone(err) {
				return err
			}
		}
	}
	return nil
}

func readManaged(ctx context.Context, j *job) (map[string]any, bool, error) {
	out, err := j.ask(ctx, iam, "GetPolicy", map[string]any{"PolicyArn": j.attribute("PolicyArn")})
	attributes := picked(at(out, "Policy"), "AttachmentCount", "CreateDate", "DefaultVersionId", "IsAttachable", "PermissionsBoundaryUsageCount", "PolicyId", "UpdateDate")
	attributes["PolicyArn"] = j.attribute("PolicyArn")
	return attributes, err == nil, err
}

// mostVersions is how many versions a managed policy has at most.
const mostVersions = 5

// renewDocument makes a version of a managed policy the default one, if the document differs from the default's. The oldest of
// five versions gives way to it.
func renewDocument(ctx context.Context, j *job) error {
	name := map[string]any{"PolicyArn": j.attribute("PolicyArn")}
	out, err := j.ask(ctx, iam, "ListPolicyVersions", name)
	if err != nil {
		return err
	}
	versions, oldest := list(out, "Versions"), ""
	for _, v := range versions {
		id := text(v, "VersionId")
		if text(v, "IsDefaultVersion") != "true" {
			oldest = id // the newest is the first
			continue
		}
		had, err := j.ask(ctx, iam, "GetPolicyVersion", map[string]any{"PolicyArn": j.attribute("PolicyArn"), "VersionId": id})
		if err != nil {
			return err
		}
		if sameDocument(text(had, "PolicyVersion.Document"), j.is["PolicyDocument"]) {
			return nil
		}
	}
	if len(versions) >= mostVersions {
		if _, err := j.ask(ctx, iam, "DeletePolicyVersion", map[string]any{"PolicyArn": j.attribute("PolicyArn"), "VersionId": oldest}); err != nil {
			return err
		}
	}
	_, err = j.ask(ctx, iam, "CreatePolicyVersion", map[string]any{"PolicyArn": j.attribute("PolicyArn"), "PolicyDocument": j.is["PolicyDocument"], "SetAsDefault": true})
	return err
}

// sameDocument reports whether a document that IAM returned, which may be escaped as in a URL, says what a template does.
func sameDocument(had string, wanted any) bool {
	if plain, err := url.PathUnescape(had); err == nil {
		had = plain
	}
	raw, ok := wanted.(string)
	if !ok {
		made, err := json.Marshal(wanted)
		if err != nil {
			return false
		}
		raw = string(made)
	}
	var a, b any
	return json.Unmarshal([]byte(had), &a) == nil && json.Unmarshal([]byte(raw), &b) == nil && reflect.DeepEqual(a, b)
}

func removeManaged(ctx context.Context, j *job) (bool, error) {
	name := map[string]any{"PolicyArn": j.attribute("PolicyArn")}
	held, err := j.ask(ctx, iam, "ListEntitiesForPolicy", name)
	if err != nil {
		return false, err
	}
	for _, h := range []struct{ member, kind string }{{"RoleName", "Role"}, {"UserName", "User"}} {
		for _, one := range list(held, "Policy"+h.kind+"s") {
			if _, err := j.ask(ctx, iam, "Detach"+h.kind+"Policy", map[string]any{h.member: text(one, h.member), "PolicyArn": j.attribute("PolicyArn")}); err != nil && !isGone(err) {
				return false, err
			}
		}
	}
	versions, err := j.ask(ctx, iam, "ListPolicyVersions", name)
	if err != nil {
		return false, err
	}
	for _, v := range list(versions, "Versions") {
		if text(v, "IsDefaultVersion") == "true" {
			continue
		}
		if _, err := j.ask(ctx, iam, "DeletePolicyVersion", map[string]any{"PolicyArn": j.attribute("PolicyArn"), "VersionId": text(v, "VersionId")}); err != nil && !isGone(err) {
			return false, err
		}
	}
	_, err = j.ask(ctx, iam, "DeletePolicy", name)
	return err == nil, err
}

const issuerMember = "OpenIDConnectProviderArn"

func createIssuer(ctx context.Context, j *job) (map[string]any, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(j.property("Url"), "https://"), "/")
	name, err := j.own(ctx, issuerMember, "oidc-provider/"+host, "GetOpenIDConnectProvider", issuerMember, "Tags")
	return map[string]any{"Arn": name}, err
}

func readIssuer(ctx context.Context, j *job) (map[string]any, bool, error) {
	_, err := j.ask(ctx, iam, "GetOpenIDConnectProvider", map[string]any{issuerMember: j.attribute("Arn")})
	return map[string]any{"Arn": j.attribute("Arn")}, err == nil, err
}

func updateIssuer(ctx context.Context, j *job) (bool, error) {
	name := j.attribute("Arn")
	changed, _ := j.of.Changes(j.was, j.is)
	if thumbprints, ok := j.is["ThumbprintList"]; ok && slices.Contains(changed, "ThumbprintList") {
		if _, err := j.ask(ctx, iam, "UpdateOpenIDConnectProviderThumbprint", map[string]any{issuerMember: name, "ThumbprintList": thumbprints}); err != nil {
			return false, err
		}
	}
	is, was := texts(j.is, "ClientIdList"), texts(j.was, "ClientIdList")
	for _, id := range is {
		if !slices.Contains(was, id) {
			if _, err := j.ask(ctx, iam, "AddClientIDToOpenIDConnectProvider", map[string]any{issuerMember: name, "ClientID": id}); err != nil {
				return false, err
			}
		}
	}
	for _, id := range was {
		if !slices.Contains(is, id) {
			if _, err := j.ask(ctx, iam, "RemoveClientIDFromOpenIDConnectProvider", map[string]any{issuerMember: name, "ClientID": id}); err != nil && !isGone(err) {
				return false, err
			}
		}
	}
	return true, retag(j, func(set map[string]string, removed []string) error {
		if len(set) > 0 {
			if _, err := j.ask(ctx, iam, "TagOpenIDConnectProvider", map[string]any{issuerMember: name, "Tags": pairs(set)}); err != nil {
				return err
			}
		}
		if len(removed) == 0 {
			return nil
		}
		_, err := j.ask(ctx, iam, "UntagOpenIDConnectProvider", map[string]any{issuerMember: name, "TagKeys": anys(removed)})
		return err
	})
}

func removeIssuer(ctx context.Context, j *job) (bool, error) {
	_, err := j.ask(ctx, iam, "DeleteOpenIDConnectProvider", map[string]any{issuerMember: j.attribute("Arn")})
	return err == nil, err
}

// errNoGroups refuses the property Groups.
var errNoGroups = errors.New("Groups is not supported: IAM has no groups here; name Roles or Users") //nolint:staticcheck // a property
