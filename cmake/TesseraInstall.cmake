# Two components:
# `library`   what plans and executes a reshard of one's own tensors, for find_package(tessera) ->
#             tessera::spec, tessera::layout, tessera::comm, tessera::reshard. Headers keep their
#             include paths below include/tessera.
# `programs`  tessera and what it calls, as far as they are built; presets in share/tessera.
include_guard()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(TESSERA_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/tessera")

install(TARGETS tessera_documents tessera_spec tessera_layout tessera_pull_steps tessera_comm tessera_storage
        tessera_arena tessera_transfers tessera_reshard
  EXPORT tessera-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera")
install(EXPORT tessera-targets NAMESPACE tessera::
  DESTINATION "${TESSERA_PACKAGE_DIR}" COMPONENT library)
foreach(folder cost_models/documents cost_models/spec cost_models/layout executor/comm
        executor/storage executor/kernels executor/arena executor/transfers executor/reshard)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}/"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera/${folder}" COMPONENT library
    FILES_MATCHING PATTERN "command_line.h" EXCLUDE PATTERN "*.h")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/cost_models/reshard/pull_steps.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera/cost_models/reshard" COMPONENT library)
foreach(component library programs)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/configs"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/tessera" COMPONENT ${component})
endforeach()
foreach(program tessera tessera-run tessera-gui tessera_mpi tessera_parquet_module)
  if(TARGET ${program})
    # torch and NCCL stay in the Python environment that they were linked from.
    set_target_properties(${program} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    # Programs look for one another beside themselves, and for modules in ../lib.
    install(TARGETS ${program}
      RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs OPTIONAL
      LIBRARY DESTINATION lib COMPONENT programs OPTIONAL)
  endif()
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/tessera-config.cmake.in"
  "${PROJECT_BINARY_DIR}/tessera-config.cmake" INSTALL_DESTINATION "${TESSERA_PACKAGE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tessera-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tessera-config.cmake"
              "${PROJECT_BINARY_DIR}/tessera-config-version.cmake"
  DESTINATION "${TESSERA_PACKAGE_DIR}" COMPONENT library)
