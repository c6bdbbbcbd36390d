// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command protogen compiles .proto files with protoc-gen-go and protoc-gen-go-grpc.
// It does not need protoc. Imported OTLP files come from the published Go module.
//
//	protogen ROOT FILE...
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	_ "go.opentelemetry.io/proto/otlp/resource/v1" // registers resource.proto and common.proto
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: protogen ROOT FILE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(root string, names []string) error {
	files, err := compile(root, names)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      withImports(files),
	}
	for _, plugin := range []string{
		"google.golang.org/protobuf/cmd/protoc-gen-go",
		"google.golang.org/grpc/cmd/protoc-gen-go-grpc",
	} {
		if err := generate(plugin, request, root); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

func compile(root string, names []string) (linker.Files, error) {
	registered := protocompile.ResolverFunc(func(path string) (protocompile.SearchResult, error) {
		file, err := protoregistry.GlobalFiles.FindFileByPath(path)
		return protocompile.SearchResult{Desc: file}, err
	})
	compiler := protocompile.Compiler{
		Resolver: protocompile.CompositeResolver{
			&protocompile.SourceResolver{ImportPaths: []string{root}},
			registered,
		},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	return compiler.Compile(context.Background(), names...)
}

// withImports returns the files and all their imports. Imports come first, as plugins
// require.
func withImports(files linker.Files) []*descriptorpb.FileDescriptorProto {
	var all []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(file protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		imports := file.Imports()
		for i := range imports.Len() {
			add(imports.Get(i).FileDescriptor)
		}
		if compiled, ok := file.(linker.Result); ok { // its descriptor includes comments
			all = append(all, compiled.FileDescriptorProto())
			return
		}
		all = append(all, protodesc.ToFileDescriptorProto(file))
	}
	for _, file := range files {
		add(file)
	}
	return all
}

func generate(plugin string, request *pluginpb.CodeGeneratorRequest, root string) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	command := exec.Command("go", "tool", plugin)
	command.Stdin = bytes.NewReader(input)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, file := range response.GetFile() {
		if err := os.WriteFile(filepath.Join(root, file.GetName()), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
