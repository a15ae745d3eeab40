// SPDX-License-Identifier: Apache-2.0

// Package efsresource has what the resources of EFS have in common: where their objects are, ids, what IAM is asked
// about a file system or an access point, the tags that say a name, and errors. The actions of each resource are a
// package beside it.
package efsresource

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
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/keylock"
	"muster.dev/muster/internal/storage/efs"
)

// Service is the name that requests to EFS are signed for.
const Service = "elasticfilesystem"

// Store is where the resources of an account's EFS are. All packages of actions share one.
type Store struct {
	awsresource.Account

	// locks have one change at a time of a file system with what names it, and of a token.
	locks keylock.Locks
}

// Hold waits until nobody else changes what the key names, and returns what ends the hold.
func (s *Store) Hold(key string) (release func()) { return s.locks.Hold(key) }

// The types of resources, as ARNs have them.
const (
	FileSystems  = "file-system/"
	AccessPoints = "access-point/"
)

// AWS has ids of 8 digits, too, which it gave out before 2020. No such id is here.
var (
	systemID = regexp.MustCompile(`^fs-[0-9a-f]{8,40}$`)
	pointID  = regexp.MustCompile(`^fsap-[0-9a-f]{8,40}$`)
)

// MountTargets are records: nothing is mounted over NFS here.
var MountTargets = awsrecord.Kind[efs.MountTarget]{Type: efs.MountTargetRecord}

// NewID makes an id of 17 random digits.
func NewID(prefix string) string {
	var random [9]byte
	_, _ = rand.Read(random[:]) // it never fails
	return prefix + hex.EncodeToString(random[:])[:17]
}

// SystemID is the id of a file system, which a request names by id or ARN.
func (s *Store) SystemID(call *awsfront.Call, text string) (string, error) {
	id := strings.TrimPrefix(text, s.ARN(call, FileSystems))
	if !systemID.MatchString(id) {
		return "", Fault(BadRequest, "invalid file system id %.100q: must be fs- and hexadecimal digits, or the ARN of a file system of this account and region", text)
	}
	return id, nil
}

// PointID is the id of an access point, which a request names by id or ARN.
func (s *Store) PointID(call *awsfront.Call, text string) (string, error) {
	id := strings.TrimPrefix(text, s.ARN(call, AccessPoints))
	if !pointID.MatchString(id) {
		return "", Fault(BadRequest, "invalid access point id %.100q: must be fsap- and hexadecimal digits, or the ARN of an access point of this account and region", text)
	}
	return id, nil
}

// System reads a file system, and refuses an id that no file system has.
func (s *Store) System(ctx context.Context, id string) (*v1alpha1.FileSystem, error) {
	object := &v1alpha1.FileSystem{}
	err := s.Management.Get(ctx, client.ObjectKey{Name: id}, object)
	if apierrors.IsNotFound(err) {
		return nil, Fault(FileSystemNotFound, "File system '%s' does not exist.", id)
	}
	return object, Away(err)
}

// Lives checks that a file system is there and is not being deleted.
func (s *Store) Lives(ctx context.Context, id string) error {
	object, err := s.System(ctx, id)
	if err == nil && !object.DeletionTimestamp.IsZero() {
		err = Fault(WrongState, "File system '%s' is being deleted.", id)
	}
	return err
}

// Point reads an access point, and refuses an id that no access point has.
func (s *Store) Point(ctx context.Context, id string) (*v1alpha1.AccessPoint, error) {
	object := &v1alpha1.AccessPoint{}
	err := s.Management.Get(ctx, client.ObjectKey{Name: id}, object)
	if apierrors.IsNotFound(err) {
		return nil, Fault(AccessPointNotFound, "Access point '%s' does not exist.", id)
	}
	return object, Away(err)
}

// AboutSystem is a file system for IAM, with its tags if it is there.
func (s *Store) AboutSystem(ctx context.Context, call *awsfront.Call, text string, request map[string][]string) ([]awsfront.Target, error) {
	id, err := s.SystemID(call, text)
	if err != nil {
		return nil, err
	}
	conditions := maps.Clone(request)
	if object, err := s.System(ctx, id); err == nil {
		conditions = awsresource.ResourceTags(conditions, SystemTags(object))
	}
	return []awsfront.Target{{Resource: s.ARN(call, FileSystems+id), Conditions: conditions}}, nil
}

// AboutPoint is an access point for IAM, with its tags if it is there.
func (s *Store) AboutPoint(ctx context.Context, call *awsfront.Call, text string, request map[string][]string) ([]awsfront.Target, error) {
	id, err := s.PointID(call, text)
	if err != nil {
		return nil, err
	}
	conditions := maps.Clone(request)
	if object, err := s.Point(ctx, id); err == nil {
		conditions = awsresource.ResourceTags(conditions, object.Spec.Tags)
	}
	return []awsfront.Target{{Resource: s.ARN(call, AccessPoints+id), Conditions: conditions}}, nil
}

const maxToken = 64 // characters

// CheckToken checks the token of a request that makes something.
func CheckToken(name, token string) error {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
		return Fault(BadRequest, "invalid %s: must have from 1 to %d visible ASCII characters", name, maxToken)
	}
	return nil
}
