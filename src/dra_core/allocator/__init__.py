"""allocator"""
