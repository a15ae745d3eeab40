// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// images is what the names of EKS's parameters about images begin with.
const images = "/aws/service/eks/optimized-ami/"

// catalogueActions are those about what there is to launch from, and key pairs.
func catalogueActions() []action {
	return append([]action{
		{"DescribeInstanceTypes", func(w *world) {
			out := need(w.ec2.DescribeInstanceTypes(w.ctx(), &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceTypeM5Large}}))
			w.has(out, "InstanceTypes[].InstanceType", "InstanceTypes[].VCpuInfo.DefaultVCpus", "InstanceTypes[].MemoryInfo.SizeInMiB", "InstanceTypes[].NetworkInfo.MaximumNetworkInterfaces",
				"InstanceTypes[].ProcessorInfo.SupportedArchitectures", "InstanceTypes[].Hypervisor")
			pages := ec2.NewDescribeInstanceTypesPaginator(w.ec2, &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(7)})
			n := 0
			for pages.HasMorePages() {
				n += len(need(pages.NextPage(w.ctx())).InstanceTypes)
			}
			if n < 15 {
				w.Errorf("there are %d instance types", n)
			}
			_, err := w.ec2.DescribeInstanceTypes(w.ctx(), &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
			w.refused("DryRunOperation", err)
			_, err = w.ec2.DescribeInstanceTypes(w.ctx(), &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"x9.huge"}})
			w.refused("InvalidInstanceType", err)
		}},
		{"DescribeInstanceTypeOfferings", func(w *world) {
			out := need(w.ec2.DescribeInstanceTypeOfferings(w.ctx(), &ec2.DescribeInstanceTypeOfferingsInput{
				LocationType: types.LocationTypeAvailabilityZone, Filters: []types.Filter{{Name: aws.String("instance-type"), Values: []string{"t3.small"}}},
			}))
			if len(out.InstanceTypeOfferings) != 3 {
				w.Errorf("%+v", out.InstanceTypeOfferings)
			}
		}},
		{"DescribeImages", func(w *world) {
			out := need(w.ec2.DescribeImages(w.ctx(), &ec2.DescribeImagesInput{
				Owners: []string{"amazon"}, Filters: []types.Filter{{Name: aws.String("name"), Values: []string{"amazon-eks-node-al2023-x86_64-standard-" + w.notes["version"] + "-*"}}},
			}))
			w.has(out, "Images[].ImageId", "Images[].Name", "Images[].CreationDate", "Images[].RootDeviceName", "Images[].BlockDeviceMappings[].Ebs.VolumeSize", "Images[].State")
			w.notes["ami"] = *out.Images[0].ImageId
			_, err := w.ec2.DescribeImages(w.ctx(), &ec2.DescribeImagesInput{ImageIds: []string{"ami-0123456789abcdef0"}})
			w.refused("InvalidAMIID.NotFound", err)
		}},
	}, append(imageActions(), keyPairActions()...)...)
}

func imageActions() []action {
	return []action{
		{"CopyImage", func(w *world) {
			out := need(w.ec2.CopyImage(w.ctx(), &ec2.CopyImageInput{
				SourceImageId: aws.String(w.notes["ami"]), SourceRegion: aws.String(w.ec2.Options().Region), Name: aws.String("live"),
				TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeImage, Tags: []types.Tag{{Key: aws.String("live"), Value: aws.String("yes")}}}},
			}))
			w.notes["copy"] = *out.ImageId
			_, err := w.ec2.CopyImage(w.ctx(), &ec2.CopyImageInput{SourceImageId: aws.String(w.notes["ami"]), SourceRegion: aws.String(w.ec2.Options().Region), Name: aws.String("live")})
			w.refused("InvalidAMIName.Duplicate", err)
			own := need(w.ec2.DescribeImages(w.ctx(), &ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: []types.Filter{{Name: aws.String("tag:live"), Values: []string{"yes"}}}}))
			w.has(own, "Images[].Name", "Images[].SourceImageId", "Images[].Tags")
		}},
		{"EnableImageDeprecation", func(w *world) {
			need(w.ec2.EnableImageDeprecation(w.ctx(), &ec2.EnableImageDeprecationInput{ImageId: aws.String(w.notes["copy"]), DeprecateAt: aws.Time(time.Now())}))
			w.has(need(w.ec2.DescribeImages(w.ctx(), &ec2.DescribeImagesInput{ImageIds: []string{w.notes["copy"]}})), "Images[].DeprecationTime")
		}},
		{"DisableImageDeprecation", func(w *world) {
			need(w.ec2.DisableImageDeprecation(w.ctx(), &ec2.DisableImageDeprecationInput{ImageId: aws.String(w.notes["copy"])}))
			_, err := w.ec2.DisableImageDeprecation(w.ctx(), &ec2.DisableImageDeprecationInput{ImageId: aws.String(w.notes["ami"])})
			w.refused("AuthFailure", err)
		}},
		{"DeregisterImage", func(w *world) {
			need(w.ec2.DeregisterImage(w.ctx(), &ec2.DeregisterImageInput{ImageId: aws.String(w.notes["copy"])}))
			_, err := w.ec2.DeregisterImage(w.ctx(), &ec2.DeregisterImageInput{ImageId: aws.String(w.notes["copy"])})
			w.refused("InvalidAMIID.NotFound", err)
		}},
	}
}

func keyPairActions() []action {
	const public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP4YQBfgXXKd/5iTYYmwvDG8FPqi7w/bbC0+hQ6+Q5ID"
	return []action{
		{"ImportKeyPair", func(w *world) {
			out := need(w.ec2.ImportKeyPair(w.ctx(), &ec2.ImportKeyPairInput{KeyName: aws.String("live"), PublicKeyMaterial: []byte(public)}))
			w.has(out, "KeyPairId", "KeyName", "KeyFingerprint")
			_, err := w.ec2.ImportKeyPair(w.ctx(), &ec2.ImportKeyPairInput{KeyName: aws.String("live"), PublicKeyMaterial: []byte(public)})
			w.refused("InvalidKeyPair.Duplicate", err)
		}},
		{"CreateKeyPair", func(w *world) {
			out := need(w.ec2.CreateKeyPair(w.ctx(), &ec2.CreateKeyPairInput{KeyName: aws.String("live-made"), KeyType: types.KeyTypeEd25519}))
			if !strings.HasPrefix(*out.KeyMaterial, "-----BEGIN OPENSSH PRIVATE KEY-----") {
				w.Error("there is no private key")
			}
		}},
		{"DescribeKeyPairs", func(w *world) {
			out := need(w.ec2.DescribeKeyPairs(w.ctx(), &ec2.DescribeKeyPairsInput{KeyNames: []string{"live"}, IncludePublicKey: aws.Bool(true)}))
			w.has(out, "KeyPairs[].KeyPairId", "KeyPairs[].KeyType", "KeyPairs[].CreateTime", "KeyPairs[].PublicKey")
			_, err := w.ec2.DescribeKeyPairs(w.ctx(), &ec2.DescribeKeyPairsInput{KeyNames: []string{"none"}})
			w.refused("InvalidKeyPair.NotFound", err)
		}},
		{"DeleteKeyPair", func(w *world) {
			for _, name := range []string{"live", "live-made", "none"} {
				need(w.ec2.DeleteKeyPair(w.ctx(), &ec2.DeleteKeyPairInput{KeyName: aws.String(name)}))
			}
		}},
	}
}

func ssmActions() []action {
	return []action{
		{"GetParametersByPath", func(w *world) {
			out := need(w.ssm.GetParametersByPath(w.ctx(), &ssm.GetParametersByPathInput{Path: aws.String(images + w.notes["version"]), Recursive: aws.Bool(true)}))
			w.has(out, "Parameters[].Name", "Parameters[].ARN", "Parameters[].Value", "Parameters[].Version")
			for _, p := range out.Parameters {
				if strings.HasSuffix(*p.Name, "/recommended/image_id") {
					w.notes["parameter"] = *p.Name
				}
			}
		}},
		{"GetParameter", func(w *world) {
			out := need(w.ssm.GetParameter(w.ctx(), &ssm.GetParameterInput{Name: aws.String(w.notes["parameter"])}))
			if *out.Parameter.Value != w.notes["ami"] && w.notes["ami"] != "" {
				w.Errorf("%s is %s, and the image %s", w.notes["parameter"], *out.Parameter.Value, w.notes["ami"])
			}
			w.has(out, "Parameter.LastModifiedDate", "Parameter.DataType")
			_, err := w.ssm.GetParameter(w.ctx(), &ssm.GetParameterInput{Name: aws.String("/mine")})
			w.refused("ParameterNotFound", err)
		}},
		{"GetParameters", func(w *world) {
			out := need(w.ssm.GetParameters(w.ctx(), &ssm.GetParametersInput{Names: []string{w.notes["parameter"], "/mine"}}))
			if len(out.Parameters) != 1 || len(out.InvalidParameters) != 1 {
				w.Errorf("%+v", out)
			}
		}},
	}
}
